import {texts} from '../../lib/i18n';
import {words} from '../../ui/words';

export const t = texts({
  ...words,
  events: ['Events', '事件'],
  type: ['Type', '类型'],
  actor: ['By', '操作者'],
  subject: ['Record id', '记录编号'],
  what: ['Event', '事件'],
  origin: ['Origin', '来源'],
  changed: ['Changed', '更改项'],
  resume: ['Resume', '继续'],
  clear: ['Clear', '清空'],
  fresh: [
    {one: 'Show {n} new event', other: 'Show {n} new events'},
    {one: '显示 {n} 个新事件', other: '显示 {n} 个新事件'},
  ],
  clearFilters: ['Clear filters', '清除筛选'],
  rows: [
    {one: '{n} event', other: '{n} events'},
    {one: '{n} 个事件', other: '{n} 个事件'},
  ],
  emptyTitle: ['Listening for events', '正在监听事件'],
  emptyText: [
    'Every change in this tenant appears here within a second. What happened before is in the audit log.',
    '此租户中的每次更改都会在一秒内显示在这里。之前发生的请查看审计日志。',
  ],
  noMatch: ['No event matches yet', '还没有匹配的事件'],
  noMatchText: [
    'Events that fit the filters appear here as they happen. Those of the last days are in the audit log.',
    '符合筛选条件的事件发生后会显示在这里。最近几天的事件请查看审计日志。',
  ],
  openAudit: ['Open the audit log', '打开审计日志'],
  toAudit: ['See what happened before', '查看之前发生的'],
  kept: [
    'The newest {n} events are kept on this screen. Older ones are in the audit log.',
    '此页面只保留最新的 {n} 个事件。更早的请查看审计日志。',
  ],
  tail: ['The tail begins here.', '实时事件从这里开始。'],
  gap: ['Some events are missing here: the platform no longer has them.', '此处缺少部分事件：平台已不再保存它们。'],
  gapPaused: [
    {
      one: '{n} event came while the tail was paused, and is not shown.',
      other: '{n} events came while the tail was paused, and are not shown.',
    },
    {one: '暂停期间有 {n} 个事件未显示。', other: '暂停期间有 {n} 个事件未显示。'},
  ],
  overview: ['Event', '事件'],
  id: ['Event id', '事件编号'],
  source: ['Source', '来源服务'],
  sequence: ['Sequence', '序号'],
  request: ['Request', '请求'],
  audit: ['Audit of this record', '此记录的审计'],
  openRecord: ['Open the record', '打开记录'],
  onlyRecord: ['Only this record', '只看此记录'],
  onlyType: ['Only this type', '只看此类型'],
  goneTitle: ['This event is no longer in the tail', '此事件已不在列表中'],
  goneText: [
    'The tail keeps the newest 500 events. The audit log keeps what was changed for longer.',
    '列表只保留最新的 500 个事件。审计日志会保存更长时间。',
  ],
  recordNow: ['The record, as of this event', '事件发生时的记录'],
});
