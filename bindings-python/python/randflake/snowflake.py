"""Ids that sort by time: those of the Snowflake family, and those of Boundary's flake."""

from randflake._randflake import BoundaryFlake, Layout, RawParts, Snowflake

__all__ = ["BoundaryFlake", "Layout", "RawParts", "Snowflake"]
