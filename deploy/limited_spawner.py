"""Servers as local processes, each inside a control group of its own where root may make one.

Where systemd runs, ``jupyterhub-systemdspawner`` does the same and more; this is for machines without it.
"""

import asyncio
from collections.abc import Callable

from jupyterhub.spawner import LocalProcessSpawner
from server_group import ServerGroup, make_group

__all__ = ["LimitedProcessSpawner"]


class LimitedProcessSpawner(LocalProcessSpawner):
    """LocalProcessSpawner that keeps ``mem_limit`` and ``cpu_limit``, and says so where it cannot."""

    _group: ServerGroup | None = None

    def make_preexec_fn(self, name: str) -> Callable[[], None]:
        """What the child does before it becomes the server: enter its group, then become the user."""
        self._group = make_group(f"jupyter-{name}", self.mem_limit, self.cpu_limit)
        if self._group is None:
            self.log.warning("no control groups here: the server of %s runs without memory and CPU limits", name)
        become_user = super().make_preexec_fn(name)
        group = self._group

        def enter_and_become_user() -> None:
            if group is not None:
                group.enter()
            become_user()

        return enter_and_become_user

    async def stop(self, now: bool = False) -> None:
        """Stop the server, then remove its group with whatever was left running in the background."""
        await super().stop(now)
        # A hub that was killed and started anew knows the server by its number only: its group has the same name.
        group = self._group or make_group(f"jupyter-{self.user.name}", self.mem_limit, self.cpu_limit)
        if group is not None:
            await asyncio.to_thread(group.remove)
            self._group = None
