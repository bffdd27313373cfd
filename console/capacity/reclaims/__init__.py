"""Taking machines back because somebody asked or a cloud gave notice: reclaims, drills, previews."""
