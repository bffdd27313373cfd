"""What a pool has, pure: machines in all, ours, other tenants', and what is owed to them.

Only three numbers are kept: the total, how many are ours, how many other tenants want. The rest follows, so it can never
disagree: they hold what they want as far as it goes, free is what neither has, and what they lack is *owed* by us. Where the pool
has shrunk below what we hold, we owe what is too much besides.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Pool:
    """One region's machines of one GPU type."""

    region: str
    gpu_type: str
    total: int
    ours: int = 0
    wanted: int = 0  # what other tenants' standard demand needs now

    @property
    def held(self) -> int:
        """Machines other tenants have."""
        return min(self.wanted, max(0, self.total - self.ours))

    @property
    def free(self) -> int:
        """Machines nobody has."""
        return max(0, self.total - self.ours - self.held)

    @property
    def owed(self) -> int:
        """Machines they need and do not have, and those of ours for which the pool has no room any more."""
        return self.wanted - self.held + max(0, self.ours - self.total)
