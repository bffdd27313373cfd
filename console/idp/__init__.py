"""The demo's identity provider: allauth's OpenID Connect provider in a process of its own, with people everybody knows.

It has its own settings, database and cookies, because it stands for somebody else's system: the console knows of it only
what it knows of any other provider. Loopback only: its passwords are public.
"""
