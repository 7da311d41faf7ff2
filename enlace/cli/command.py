"""Órdenes de click que hablan español también donde click no usa gettext."""

import click

_USAGE = {"[OPTIONS]": "[OPCIONES]", "COMMAND [ARGS]...": "ORDEN [ARGUMENTOS]…"}


class Command(click.Command):
    """Una orden cuya línea de uso está en español."""

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """Las piezas de la línea de uso."""
        return [_USAGE.get(piece, piece) for piece in super().collect_usage_pieces(ctx)]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Analiza los argumentos; a una opción sin su valor, click olvida apuntarle de qué orden es."""
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            error.ctx = error.ctx or ctx
            raise


class Group(Command, click.Group):
    """Un grupo de órdenes cuya línea de uso, y la de sus órdenes, está en español."""

    command_class = Command
    group_class = type
