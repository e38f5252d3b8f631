// The type of a dashboard as JSON, from Grafana's own types: panels with the options of their kind.
import * as ui from '@grafana/schema';
import * as bargauge from 'panelcfg/bargauge';
import * as gauge from 'panelcfg/gauge';
import * as heatmap from 'panelcfg/heatmap';
import * as stat from 'panelcfg/stat';
import * as statetimeline from 'panelcfg/statetimeline';
import * as table from 'panelcfg/table';
import * as timeseries from 'panelcfg/timeseries';
import { Given } from './given';

/** The JSON form of a type: an enum becomes its values. */
type Json<T> = T extends string
  ? `${T}`
  : T extends number
    ? `${T}` extends `${infer Value extends number}`
      ? Value
      : never
    : T extends boolean | null | undefined
      ? T
      : T extends Array<infer Item>
        ? Array<Json<Item>>
        : T extends object
          ? { [Key in keyof T]: Json<T[Key]> }
          : T;

interface Target {
  refId: string;
  datasource: ui.DataSourceRef;
  editorMode: 'code';
  expr: string;
  format: 'time_series' | 'table' | 'heatmap';
  instant: boolean;
  range: boolean;
  legendFormat: string;
}

interface Override {
  matcher: { id: string; options?: unknown };
  properties: Array<{ id: string; value?: unknown }>;
}

type PanelOf<Type extends string, Options, Custom> = Omit<
  Json<ui.Panel>,
  'type' | 'options' | 'fieldConfig' | 'targets'
> & {
  type: Type;
  options: Given<Json<Options>>;
  targets: Target[];
  fieldConfig: {
    defaults: Omit<Json<ui.FieldConfig>, 'custom'> & { custom: Json<Custom> };
    overrides: Override[];
  };
};

type Nothing = Record<string, never>;

type Panel =
  | PanelOf<'timeseries', timeseries.Options, timeseries.FieldConfig>
  | PanelOf<'stat', stat.Options, Nothing>
  | PanelOf<'gauge', gauge.Options, Nothing>
  | PanelOf<'bargauge', bargauge.Options, Nothing>
  | PanelOf<'heatmap', heatmap.Options, heatmap.FieldConfig>
  | PanelOf<'state-timeline', statetimeline.Options, statetimeline.FieldConfig>
  | PanelOf<'table', table.Options, table.FieldConfig>
  | Json<ui.RowPanel>;

export type Dashboard = Omit<Json<ui.Dashboard>, 'panels'> & { panels: Panel[] };
