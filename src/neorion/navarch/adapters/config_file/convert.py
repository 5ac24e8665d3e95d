"""From the file to the model's values."""

from neorion.capacity.gpu import Remedy
from neorion.navarch.adapters.config_file.file import ConfigFile
from neorion.navarch.adapters.config_file.policies import DEFAULT
from neorion.navarch.adapters.config_file.pools import (
    BudgetModel,
    CommonCauseModel,
    HealthModel,
    LadderModel,
    PoolModel,
    PoolProvider,
)
from neorion.navarch.adapters.config_file.sections import ProviderModel
from neorion.navarch.model import PoolSpec, spec


def pool_specs(file: ConfigFile) -> dict[str, PoolSpec]:
    return {name: _pool(name, pool, file) for name, pool, _ in file.named_pools()}


def _pool(name: str, pool: PoolModel, file: ConfigFile) -> PoolSpec:
    health = (
        file.defaults.health
        if file.defaults.health and "health" not in pool.model_fields_set
        else pool.health
    )
    return PoolSpec(
        name=name,
        offers=tuple(_offers(pool, file)),
        strategy=spec.Strategy(pool.strategy),
        scaling=_scaling(pool, file),
        health=_health(health, file),
        timing=_timing(health, file),
        spending=spec.SpendLimits(
            # A pool's worth of machines in an hour: more is not growth but a fault that repeats itself.
            per_hour=pool.max_purchases_per_hour or max(10, pool.most + pool.spares),
            price=pool.max_price or 0.0,
            total=pool.max_spend or 0.0,
        ),
        bootstrap=spec.Bootstrap(
            pool.setup_commands,
            pool.ssh_user or file.defaults.ssh_user,
            pool.ssh_private_key_path or file.defaults.ssh_private_key_path,
            pool.ssh_port,
            first_contact=pool.ssh_host_keys == "first-contact",
        ),
        labels=tuple(sorted(pool.labels.items())),
        ssh_keys=pool.ssh_keys or file.defaults.ssh_keys,
        image=pool.image,
        adopt=pool.adopt,
    )


def _offers(pool: PoolModel, file: ConfigFile) -> list[spec.Offer]:
    named = pool.providers or (PoolProvider(name=pool.provider),)
    return [_offer(one, pool, file.providers[one.name]) for one in named]


def _offer(one: PoolProvider, pool: PoolModel, cloud: ProviderModel) -> spec.Offer:
    return spec.Offer(
        provider=one.name,
        instance_type=one.instance_type or pool.instance_type,
        regions=one.regions or (pool.region or cloud.region,),
        zones=one.zones or pool.zones or (cloud.zone,),
        priority=one.priority,
        weight=one.weight,
        spot=one.spot or pool.spot,
        reservation=one.reservation,
    )


def _scaling(pool: PoolModel, file: ConfigFile) -> spec.Scaling:
    usual = spec.Scaling()
    older = pool.scaling
    cooldown = (older.cooldown_period if older else pool.cooldown) or usual.cooldown
    scaler = older.autoscaler if older else pool.autoscaling
    return spec.Scaling(
        least=pool.least,
        most=pool.most,
        spares=pool.spares,
        surge=usual.surge if pool.surge is None else _amount(pool.surge),
        # Sizes are looked at no more often than this, so a shorter pause would be none.
        cooldown=max(cooldown, file.server.autoscale_interval),
        stable=usual.stable if pool.stabilization is None else pool.stabilization,
        step_up=pool.max_step_up or usual.step_up,
        step_down=pool.max_step_down or usual.step_down,
        autoscaler=scaler.value() if scaler else None,
    )


def _health(health: HealthModel, file: ConfigFile) -> spec.HealthRules:
    usual = spec.HealthRules()
    return spec.HealthRules(
        unhealthy_after=health.unhealthy_after or health.unhealthy_threshold or usual.unhealthy_after,
        auto_replace=health.auto_replace,
        policy=health.policy or file.server.policy or DEFAULT,
        approval=frozenset(Remedy(one) for one in health.approval),
        budgets=usual.budgets if health.budgets is None else tuple(_budget(one) for one in health.budgets),
        cause=_cause(health.common_cause),
        ladder=_ladder(health.ladder),
    )


def _cause(one: CommonCauseModel) -> spec.CommonCause:
    usual = spec.CommonCause()
    return spec.CommonCause(
        share=usual.share if one.share is None else _amount(one.share).percent,
        least=one.at_least or usual.least,
        within=one.within or usual.within,
        # No wait is a wait too: then only budgets hold.
        settle=usual.settle if one.wait is None else one.wait,
    )


def _ladder(one: LadderModel) -> spec.RepairLadder:
    usual = spec.RepairLadder()
    return spec.RepairLadder(
        tries=one.tries or usual.tries,
        pause=usual.pause if one.pause is None else one.pause,
        most=one.max_treatments or usual.most,
        lemon=one.lemon_nodes or usual.lemon,
    )


def _timing(health: HealthModel, file: ConfigFile) -> spec.Timing:
    usual = spec.Timing()
    return spec.Timing(
        heartbeat=file.server.heartbeat_interval,
        silence=file.server.silence,
        boot=health.boot_timeout or usual.boot,
        verify=health.verify_for or usual.verify,
        drain=health.drain_timeout or usual.drain,
    )


def _budget(one: BudgetModel) -> spec.Budget:
    return spec.Budget(
        most=_amount(one.max_unavailable),
        per=one.per,
        reasons=one.reasons,
        zones=one.zones,
        each_zone=one.each_zone,
        windows=tuple(window.value() for window in one.windows),
    )


def _amount(share: str | int) -> spec.CountOrPercent:
    return (
        spec.CountOrPercent(percent=float(share[:-1]))
        if isinstance(share, str)
        else spec.CountOrPercent(count=share)
    )
