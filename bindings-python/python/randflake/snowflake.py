"""Ids that sort by time: ids of the Snowflake family, and of Boundary's flake."""

from randflake._randflake import BoundaryFlake, Layout, RawParts, Snowflake

__all__ = ["BoundaryFlake", "Layout", "RawParts", "Snowflake"]
