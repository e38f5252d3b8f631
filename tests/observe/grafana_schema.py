"""The JSON that the dashboards may consist of, stricter than Grafana: every key and every value is listed.

Grafana ignores keys that it does not know and values of wrong types: a mistake there is an option without effect.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

__all__ = ["DashboardJson"]

ThemeColor = Literal["green", "yellow", "orange", "red", "blue", "purple", "text"]
NonEmpty = Annotated[str, Field(min_length=1)]


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class DataSource(Strict):
    type: Literal["prometheus"]
    uid: Literal["${datasource}"]


class GridPos(Strict):
    h: Annotated[int, Field(ge=1, le=24)]
    w: Annotated[int, Field(ge=1, le=24)]
    x: Annotated[int, Field(ge=0, le=23)]
    y: Annotated[int, Field(ge=0)]


class Target(Strict):
    refId: Annotated[str, Field(pattern="^[A-Z]$")]
    datasource: DataSource
    editorMode: Literal["code"]
    expr: NonEmpty
    format: Literal["time_series", "table", "heatmap"]
    instant: bool
    range: bool
    legendFormat: NonEmpty


class Link(Strict):
    asDropdown: bool
    icon: Literal["doc", "external link"]
    includeVars: bool
    keepTime: bool
    tags: list[str]
    targetBlank: bool
    title: NonEmpty
    tooltip: str
    type: Literal["link", "dashboards"]
    url: str


class Step(Strict):
    color: ThemeColor
    value: float | int | None


class Thresholds(Strict):
    mode: Literal["absolute"]
    steps: Annotated[list[Step], Field(min_length=2)]


class Mapped(Strict):
    text: NonEmpty
    color: ThemeColor
    index: int


class ValueMapping(Strict):
    type: Literal["value"]
    options: Annotated[dict[Annotated[str, Field(pattern=r"^-?\d+$")], Mapped], Field(min_length=1)]


class SeriesColor(Strict):
    mode: Literal["palette-classic", "thresholds"]


class Defaults(Strict):
    unit: NonEmpty
    color: SeriesColor
    mappings: list[ValueMapping]
    thresholds: Thresholds
    decimals: int | None = None
    min: float | int | None = None
    max: float | int | None = None
    noValue: NonEmpty | None = None


class Nothing(Strict):
    pass


class Mode(Strict):
    mode: Literal["off", "dashed"]


class Stacking(Strict):
    mode: Literal["none", "normal"]
    group: Literal["A"]


class LogScale(Strict):
    type: Literal["log"]
    log: Literal[2, 10]


class TimeSeriesCustom(Strict):
    drawStyle: Literal["line"]
    lineInterpolation: Literal["linear", "stepAfter"]
    lineWidth: int
    fillOpacity: Annotated[int, Field(ge=0, le=100)]
    showPoints: Literal["never"]
    spanNulls: Literal[False]
    stacking: Stacking
    thresholdsStyle: Mode
    scaleDistribution: LogScale | None = None


class TimelineCustom(Strict):
    lineWidth: int
    fillOpacity: Annotated[int, Field(ge=0, le=100)]


class Scale(Strict):
    type: Literal["linear"]


class HeatmapCustom(Strict):
    scaleDistribution: Scale


class CellOptions(Strict):
    type: Literal["auto", "color-text"]


class TableCustom(Strict):
    align: Literal["auto"]
    cellOptions: CellOptions
    inspect: bool


class LineStyle(Strict):
    fill: Literal["dash"]
    dash: list[int]


class FixedColor(Strict):
    mode: Literal["fixed"]
    fixedColor: ThemeColor


class ColumnLink(Strict):
    title: NonEmpty
    url: Annotated[str, Field(pattern=r"^/d/rayhelm-[a-z-]+\?var-")]


class RunbookOfAlert(Strict):
    title: NonEmpty
    url: Literal["${runbooks}/${__value.raw}.md"]
    targetBlank: Literal[True]


class _LineStyleProperty(Strict):
    id: Literal["custom.lineStyle"]
    value: LineStyle


class _FillProperty(Strict):
    id: Literal["custom.fillOpacity"]
    value: int


class _StackingProperty(Strict):
    id: Literal["custom.stacking"]
    value: Stacking


class _ColorProperty(Strict):
    id: Literal["color"]
    value: FixedColor


class _UnitProperty(Strict):
    id: Literal["unit"]
    value: NonEmpty


class _MappingsProperty(Strict):
    id: Literal["mappings"]
    value: list[ValueMapping]


class _ThresholdsProperty(Strict):
    id: Literal["thresholds"]
    value: Thresholds


class _CellProperty(Strict):
    id: Literal["custom.cellOptions"]
    value: CellOptions


class _LinksProperty(Strict):
    id: Literal["links"]
    value: list[ColumnLink | RunbookOfAlert]


Property = Annotated[
    _LineStyleProperty
    | _FillProperty
    | _StackingProperty
    | _ColorProperty
    | _UnitProperty
    | _MappingsProperty
    | _ThresholdsProperty
    | _CellProperty
    | _LinksProperty,
    Field(discriminator="id"),
]


class Matcher(Strict):
    id: Literal["byName", "byFrameRefID", "byRegexp"]
    options: NonEmpty


class Override(Strict):
    matcher: Matcher
    properties: list[Property]


class Reduce(Strict):
    values: Literal[False]
    calcs: tuple[Literal["lastNotNull"]] = Field(strict=False)
    fields: Literal[""]


class Legend(Strict):
    displayMode: Literal["list"]
    placement: Literal["bottom"]
    showLegend: bool
    calcs: list[str]


class Tooltip(Strict):
    mode: Literal["single", "multi"]
    sort: Literal["none", "desc"]


class TimeSeriesOptions(Strict):
    legend: Legend
    tooltip: Tooltip


class StatOptions(Strict):
    colorMode: Literal["value"]
    graphMode: Literal["none"]
    justifyMode: Literal["auto"]
    orientation: Literal["auto"]
    percentChangeColorMode: Literal["standard"]
    reduceOptions: Reduce
    showPercentChange: Literal[False]
    textMode: Literal["auto"]
    wideLayout: bool


class GaugeOptions(Strict):
    minVizHeight: int
    minVizWidth: int
    orientation: Literal["auto"]
    reduceOptions: Reduce
    showThresholdLabels: bool
    showThresholdMarkers: bool
    sizing: Literal["auto"]


class BarGaugeOptions(Strict):
    displayMode: Literal["basic"]
    legend: Legend
    maxVizHeight: int
    minVizHeight: int
    minVizWidth: int
    namePlacement: Literal["auto"]
    orientation: Literal["horizontal"]
    reduceOptions: Reduce
    showUnfilled: bool
    sizing: Literal["auto"]
    valueMode: Literal["color"]


class TimelineOptions(Strict):
    alignValue: Literal["left"]
    legend: Legend
    mergeValues: bool
    rowHeight: float
    showValue: Literal["auto"]
    tooltip: Tooltip


class HeatmapColor(Strict):
    exponent: float
    fill: str
    mode: Literal["scheme"]
    reverse: bool
    scale: Literal["exponential"]
    scheme: Literal["Oranges"]
    steps: int


class Exemplars(Strict):
    color: str


class Filter(Strict):
    le: float


class Show(Strict):
    show: bool


class Rows(Strict):
    layout: Literal["auto"]


class HeatmapTooltip(Strict):
    mode: Literal["single"]
    showColorScale: bool
    yHistogram: bool


class YAxis(Strict):
    axisPlacement: Literal["left"]
    reverse: bool
    unit: NonEmpty


class HeatmapOptions(Strict):
    calculate: Literal[False]
    cellGap: int
    color: HeatmapColor
    exemplars: Exemplars
    filterValues: Filter
    legend: Show
    rowsFrame: Rows
    showValue: Literal["never"]
    tooltip: HeatmapTooltip
    yAxis: YAxis


class TableOptions(Strict):
    cellHeight: Literal["sm"]
    frameIndex: Literal[0]
    showHeader: bool


class PanelJson(Strict):
    id: Annotated[int, Field(ge=1)]
    title: NonEmpty
    description: Annotated[str, Field(min_length=20)]
    datasource: DataSource
    gridPos: GridPos
    links: list[Link] | None = None
    targets: Annotated[list[Target], Field(min_length=1)]
    pluginVersion: Literal["11.6.0"]


class TimeSeriesDefaults(Defaults):
    custom: TimeSeriesCustom


class TimelineDefaults(Defaults):
    custom: TimelineCustom


class HeatmapDefaults(Defaults):
    custom: HeatmapCustom


class TableDefaults(Defaults):
    custom: TableCustom


class PlainDefaults(Defaults):
    custom: Nothing


class _FieldConfig(Strict):
    overrides: list[Override]


class TimeSeriesField(_FieldConfig):
    defaults: TimeSeriesDefaults


class TimelineField(_FieldConfig):
    defaults: TimelineDefaults


class HeatmapField(_FieldConfig):
    defaults: HeatmapDefaults


class TableField(_FieldConfig):
    defaults: TableDefaults


class PlainField(_FieldConfig):
    defaults: PlainDefaults


class TimeSeriesPanel(PanelJson):
    type: Literal["timeseries"]
    options: TimeSeriesOptions
    fieldConfig: TimeSeriesField


class StatPanel(PanelJson):
    type: Literal["stat"]
    options: StatOptions
    fieldConfig: PlainField


class GaugePanel(PanelJson):
    type: Literal["gauge"]
    options: GaugeOptions
    fieldConfig: PlainField


class BarGaugePanel(PanelJson):
    type: Literal["bargauge"]
    options: BarGaugeOptions
    fieldConfig: PlainField


class TimelinePanel(PanelJson):
    type: Literal["state-timeline"]
    options: TimelineOptions
    fieldConfig: TimelineField


class HeatmapPanel(PanelJson):
    type: Literal["heatmap"]
    options: HeatmapOptions
    fieldConfig: HeatmapField


class Merge(Strict):
    id: Literal["merge"]
    options: Nothing


class Names(Strict):
    names: list[str]


class Include(Strict):
    include: Names


class FilterFields(Strict):
    id: Literal["filterFieldsByName"]
    options: Include


class OrganizeOptions(Strict):
    excludeByName: Nothing
    indexByName: dict[str, int]
    renameByName: dict[str, str]


class Organize(Strict):
    id: Literal["organize"]
    options: OrganizeOptions


class TablePanel(PanelJson):
    type: Literal["table"]
    options: TableOptions
    fieldConfig: TableField
    transformations: list[Merge | FilterFields | Organize]


class RowPanel(Strict):
    id: int
    type: Literal["row"]
    title: NonEmpty
    gridPos: GridPos
    collapsed: bool
    panels: list["AnyPanel"]


AnyPanel = Annotated[
    RowPanel | TimeSeriesPanel | StatPanel | GaugePanel | BarGaugePanel | TimelinePanel | HeatmapPanel | TablePanel,
    Field(discriminator="type"),
]


class DataSourceVariable(Strict):
    hide: Literal[0]
    label: NonEmpty
    name: Literal["datasource"]
    query: Literal["prometheus"]
    type: Literal["datasource"]


class RunbooksVariable(Strict):
    hide: Literal[0]
    label: NonEmpty
    name: Literal["runbooks"]
    query: Literal[""]
    type: Literal["textbox"]


class VariableQuery(Strict):
    qryType: Literal[1]
    query: Annotated[str, Field(pattern=r"^label_values\(.+, \w+\)$")]
    refId: NonEmpty


class Current(Strict):
    selected: bool
    text: list[Literal["All"]]
    value: list[Literal["$__all"]]


class QueryVariable(Strict):
    allValue: Literal[".*"]
    current: Current
    datasource: DataSource
    hide: Literal[0]
    includeAll: Literal[True]
    label: NonEmpty
    multi: Literal[True]
    name: Literal["cluster", "namespace", "service", "model", "tenant"]
    query: VariableQuery
    refresh: Literal[2]
    regex: str | None = None
    sort: Literal[1]
    type: Literal["query"]


class Templating(Strict):
    list: list[Annotated[DataSourceVariable | QueryVariable | RunbooksVariable, Field(discriminator="type")]]


class GrafanaSource(Strict):
    type: Literal["grafana"]
    uid: Literal["-- Grafana --"]


class Annotation(Strict):
    builtIn: Literal[1]
    datasource: GrafanaSource
    enable: bool
    hide: bool
    iconColor: str
    name: str
    type: Literal["dashboard"]


class Annotations(Strict):
    list: list[Annotation]


class TimeRange(Strict):
    to: Literal["now"]
    from_: Annotated[str, Field(alias="from", pattern=r"^now-\d+[hd]$")]


class DashboardJson(Strict):
    """A dashboard as Grafana 11 and 12 import it."""

    annotations: Annotations
    description: Annotated[str, Field(min_length=20)]
    editable: Literal[True]
    graphTooltip: Literal[1]
    links: list[Link]
    panels: Annotated[list[AnyPanel], Field(min_length=2)]
    refresh: Literal["30s", "1m"]
    schemaVersion: Annotated[int, Field(ge=39)]
    tags: list[Literal["rayhelm"]]
    templating: Templating
    time: TimeRange
    timepicker: Nothing
    timezone: Literal["browser"]
    title: NonEmpty
    uid: Annotated[str, Field(pattern="^rayhelm-[a-z-]{1,32}$")]
    version: int
