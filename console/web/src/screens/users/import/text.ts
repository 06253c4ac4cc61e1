import {texts} from '../../../lib/i18n';
import {words} from '../../../ui/words';

export const t = texts({
  ...words,
  title: ['Import users', '导入用户'],
  choose: ['Choose a CSV file', '选择 CSV 文件'],
  drop: [
    'or drop it here. Nothing is sent before you have seen what will happen.',
    '或拖放到此处。在您看到预览之前不会发送任何内容。',
  ],
  lines: [
    {one: '{n} line', other: '{n} lines'},
    {one: '{n} 行', other: '{n} 行'},
  ],
  map: ['Columns of the file', '文件中的列'],
  ignore: ['Leave out', '忽略'],
  needName: ['One column has to be the username.', '必须有一列作为用户名。'],
  preview: ['Try {n} lines', '试运行 {n} 行'],
  tried: ['Tried, nothing is written yet', '仅为试运行，尚未写入'],
  conflict: ['If a username, e-mail or mobile is taken', '用户名、邮箱或手机已被占用时'],
  fail: ['The line fails', '该行失败'],
  skip: ['The line is skipped', '跳过该行'],
  update: ['The user with that username is updated', '更新该用户名的用户'],
  start: ['Import {n} lines', '导入 {n} 行'],
  resume: ['Go on', '继续'],
  result: [
    '{created} created, {updated} updated, {skipped} skipped, {failed} failed',
    '新建 {created}，更新 {updated}，跳过 {skipped}，失败 {failed}',
  ],
  failures: ['Failed lines as a file', '失败行文件'],
  line: ['Line', '行'],
  outcome: ['Outcome', '结果'],
  wouldBe: ['Would be', '预计'],
  rate: ['{n} lines a second', '每秒 {n} 行'],
  another: ['Another file', '另选文件'],
  noRows: ['The file has no line below its headings.', '文件标题行下没有内容。'],
  created: ['created', '新建'],
  updated: ['updated', '更新'],
  skipped: ['skipped', '跳过'],
  failed: ['failed', '失败'],
  reason: ['reason', '原因'],
});
