import {texts} from '../../../lib/i18n';
import {words} from '../../../ui/words';

export const t = texts({
  ...words,
  lock: ['Lock', '锁定'],
  unlock: ['Unlock', '解锁'],
  invite: ['Invite by email', '邮件邀请'],
  reset: ['Reset passwords', '重置密码'],
  move: ['Change organization', '变更组织'],
  delete: ['Delete', '删除'],
  lockTitle: [
    {one: 'Lock {n} user', other: 'Lock {n} users'},
    {one: '锁定 {n} 个用户', other: '锁定 {n} 个用户'},
  ],
  unlockTitle: [
    {one: 'Unlock {n} user', other: 'Unlock {n} users'},
    {one: '解锁 {n} 个用户', other: '解锁 {n} 个用户'},
  ],
  inviteTitle: [
    {one: 'Invite {n} user', other: 'Invite {n} users'},
    {one: '邀请 {n} 个用户', other: '邀请 {n} 个用户'},
  ],
  resetTitle: [
    {one: 'Reset the password of {n} user', other: 'Reset the passwords of {n} users'},
    {one: '重置 {n} 个用户的密码', other: '重置 {n} 个用户的密码'},
  ],
  moveTitle: [
    {one: 'Change the organization of {n} user', other: 'Change the organization of {n} users'},
    {one: '变更 {n} 个用户的组织', other: '变更 {n} 个用户的组织'},
  ],
  deleteTitle: [
    {one: 'Delete {n} user', other: 'Delete {n} users'},
    {one: '删除 {n} 个用户', other: '删除 {n} 个用户'},
  ],
  lockText: [
    'Locked users are signed out everywhere, cannot log in, and keep everything else.',
    '被锁定的用户将在各处退出登录，不能再登录，其他一切保持不变。',
  ],
  unlockText: ['They can log in again.', '他们可以重新登录。'],
  inviteText: [
    'Each gets an email with a link, which works for a week: the person chooses a first password and is signed in. Who is invited already gets another link.',
    '每个用户会收到一封含链接的邮件，一周内有效：用户设置首个密码后即登录。已被邀请的用户会收到新的链接。',
  ],
  resetText: [
    'The platform makes a new password for each and shows them once, as a file. The present ones and all sessions end now, and everybody has to choose another at the next login.',
    '平台为每个用户生成新密码，并以文件形式显示一次。当前密码和所有会话立即失效，所有人下次登录时必须另设密码。',
  ],
  moveText: [
    'They leave one node of a tree and join another; other memberships stay.',
    '他们离开树中的一个节点并加入另一个；其他成员关系不变。',
  ],
  deleteText: [
    'This cannot be undone. Their memberships, rules and sub-accounts go along. Export them first if you may need them again.',
    '此操作无法撤销。他们的成员关系、规则和子账户会一并删除。若以后可能需要，请先导出。',
  ],
  finding: ['Finding users… {n}', '正在查找用户… {n}'],
  checking: ['Trying it, nothing is changed yet… {n} of {total}', '正在试运行，尚未更改… {n} / {total}'],
  canAll: [
    {one: 'The platform would do it.', other: 'The platform would do it for all {n}.'},
    {one: '平台可以执行。', other: '平台可以对全部 {n} 个用户执行。'},
  ],
  canSome: ['The platform would do it for {n} of {total}.', '平台可以对 {total} 个用户中的 {n} 个执行。'],
  canNone: ['The platform refuses it for all of them.', '平台拒绝对所有这些用户执行。'],
  already: [
    {one: '{n} of them is locked now.', other: '{n} of them are locked now.'},
    {one: '其中 {n} 个当前已锁定。', other: '其中 {n} 个当前已锁定。'},
  ],
  cannot: [
    {one: '{n} is refused', other: '{n} are refused'},
    {one: '{n} 个被拒绝', other: '{n} 个被拒绝'},
  ],
  tree: ['Tree', '树'],
  from: ['They leave', '离开'],
  fromHelp: ['Leave it empty to only add them.', '留空则仅加入。'],
  to: ['They join', '加入'],
  clear: ['Nothing', '无'],
  typeCount: ['Type {n} to confirm', '输入 {n} 以确认'],
  resume: ['Go on', '继续'],
  progress: ['{n} of {total}', '{n} / {total}'],
  rate: ['{n} a second', '每秒 {n} 个'],
  timeLeft: ['{time} left', '剩余 {time}'],
  failures: ['Refused ones as a file', '被拒绝者文件'],
  passwords: ['Passwords as a file', '密码文件'],
  stored: ['I have stored them', '我已妥善保存'],
  storeNow: ['The passwords are shown only now.', '密码仅此一次显示。'],
  finished: [
    {one: '{n} user changed', other: '{n} users changed'},
    {one: '已更改 {n} 个用户', other: '已更改 {n} 个用户'},
  ],
  finishedInvite: [
    {one: '{n} user invited', other: '{n} users invited'},
    {one: '已邀请 {n} 个用户', other: '已邀请 {n} 个用户'},
  ],
  finishedDelete: [
    {one: '{n} user deleted', other: '{n} users deleted'},
    {one: '已删除 {n} 个用户', other: '已删除 {n} 个用户'},
  ],
  failed: [
    {one: '{n} refused', other: '{n} refused'},
    {one: '{n} 个被拒绝', other: '{n} 个被拒绝'},
  ],
  more: ['and {n} more', '另有 {n} 个'],
  stopTitle: ['Stop here?', '在此停止？'],
  stopText: [
    '{n} users are changed and stay so; the others are left as they are.',
    '已更改的 {n} 个用户保持更改；其余保持原样。',
  ],
  stop: ['Stop', '停止'],
  export: ['Export…', '导出…'],
  exportTitle: ['Export users', '导出用户'],
  exportText: [
    'The users of this list, with its search and filters, without secrets, in a form that the import reads.',
    '此列表的用户（按当前搜索和筛选），不含密钥，格式可供导入。',
  ],
  format: ['Form', '格式'],
  csv: ['CSV, for spreadsheets', 'CSV，用于电子表格'],
  jsonl: ['JSON Lines, for programs: one user a line', 'JSON Lines，用于程序：每行一个用户'],
  exportDo: ['Export', '导出'],
  exported: [
    {one: '{n} user exported', other: '{n} users exported'},
    {one: '已导出 {n} 个用户', other: '已导出 {n} 个用户'},
  ],
});
