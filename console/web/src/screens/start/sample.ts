// The sample company: 200 people in three trees. Everything of it can be found again by its marks, so that one button
// removes it and nothing else.
import {
  addResourceSetMembers,
  addTreeUsers,
  createApplication,
  createCoreObject,
  createResource,
  createResourceSet,
  createTreeNodes,
  deleteApplication,
  deleteCoreObject,
  deleteTreeNode,
  deleteUsers,
  grantAuthRules,
  listApplications,
  listCoreObjects,
  listDescendants,
  listResources,
  listResourceSets,
  listTreeNodes,
  listTreeUsers,
  listUsers,
  type CoreObject,
  type NewBatchNodeWritable,
  type NewMembershipWritable,
  type NewUserWritable,
} from '@idplatform/sdk';
import {call, run} from '../../lib/api';
import {allPages} from '../../lib/pages';
import {place} from '../../lib/router';
import {may} from '../../lib/session';
import {importLines} from '../../lib/ndjson';

export const numberPrefix = 'SAMPLE-';
export const treePrefix = 'sample-';
export const appName = 'Sample books';
const people = 200;

type Tree = {code: string; name: string; nodes: [ref: string, parent: string, name: string][]};

const trees: Tree[] = [
  {
    code: 'sample-company',
    name: 'Sample company',
    nodes: [
      ['rd', '', 'Research'],
      ['platform', 'rd', 'Platform'],
      ['mobile', 'rd', 'Mobile'],
      ['data', 'rd', 'Data 数据'],
      ['sales', '', 'Sales'],
      ['emea', 'sales', 'EMEA'],
      ['apac', 'sales', 'APAC 亚太'],
      ['americas', 'sales', 'Americas'],
      ['finance', '', 'Finance'],
      ['accounts', 'finance', 'Accounts'],
      ['controlling', 'finance', 'Controlling'],
      ['people', '', 'People'],
      ['support', '', 'Support'],
    ],
  },
  {
    code: 'sample-places',
    name: 'Sample places',
    nodes: [
      ['berlin', '', 'Berlin'],
      ['shanghai', '', 'Shanghai 上海'],
      ['toronto', '', 'Toronto'],
      ['remote', '', 'Remote'],
    ],
  },
  {
    code: 'sample-projects',
    name: 'Sample projects',
    nodes: [
      ['atlas', '', 'Atlas'],
      ['borealis', '', 'Borealis'],
      ['cedar', '', 'Cedar'],
    ],
  },
];

const given = 'May Ana Tom Eva Noor Igor Lena Omar Kenji Rosa Paul Mina Jun Sara Ravi Ines Hugo Maja Liam Yara'.split(
  ' ',
);
const family =
  'Li Chen Wang Novak Silva Becker Haddad Tanaka Rossi Smith Okoye Meyer Ivanova Kim Dubois Larsen Costa Singh Moreau Park'.split(
    ' ',
  );
const chinese = ['李伟', '王芳', '张敏', '刘洋', '陈静', '杨磊', '赵倩', '黄强', '周婷', '吴昊'];
const titles = ['Engineer', 'Analyst', 'Manager', 'Consultant', 'Designer', 'Assistant'];

function person(i: number): Partial<NewUserWritable> {
  const g = given[i % given.length]!,
    f = family[(i * 7 + Math.floor(i / given.length)) % family.length]!;
  const name = i === 0 ? 'Li Wei' : i % 9 === 4 ? chinese[((i / 9) | 0) % chinese.length]! : `${g} ${f}`;
  const login = (i === 0 ? 'li.wei' : `${g}.${f}${i}`).toLowerCase();
  return {
    username: `${login}@sample`,
    display_name: name,
    email: `${login}@sample.example`,
    employee_number: numberPrefix + String(i + 1).padStart(3, '0'),
    status: i % 23 === 22 ? '0' : '1',
    locale: i % 9 === 4 ? 'zh-CN' : 'en',
  };
}

export type Progress = (done: number, of: number) => void;

/** make makes the company. What an interrupted attempt made is used. */
export async function make(progress: Progress): Promise<void> {
  const steps = trees.length * 2 + 3;
  let done = 0;
  const step = () => progress(++done, steps);
  const lines = await importLines(
    Array.from({length: people}, (_, i) => person(i)),
    {conflict: 'skip'},
  );
  step();
  const ids = lines.some((l) => !l.id) ? await sampleUsers() : lines.map((l) => l.id!);
  step();
  const present = new Set((await sampleTrees()).map((t) => t.code));
  for (const tree of trees) {
    if (present.has(tree.code)) {
      step();
      step();
      continue;
    }
    await call(createCoreObject({body: {code: tree.code, name: tree.name}}));
    const items: NewBatchNodeWritable[] = tree.nodes.map(([ref, parent, name]) => ({
      ref,
      name,
      code: ref,
      ...(parent ? {parent_ref: parent} : {parent_id: ''}),
    }));
    const made = await call(createTreeNodes({body: {object_code: tree.code, items}}));
    step();
    await call(
      addTreeUsers({
        body: {
          items: memberships(
            tree,
            made.items.map((n) => n.id),
            ids,
          ),
        },
      }),
    );
    step();
  }
  if (may('applications:write') && may('permissions:write')) await grants(ids[0]!);
  step();
}

/**
 * grants makes an application with invoices and reports, and says who may do what with them, so that the explorer has
 * answers: the department of the first person may read invoices; writing them needs a rule that is not there.
 */
async function grants(first: string): Promise<void> {
  const app =
    (await sampleApp())?.id ??
    (await call(createApplication({body: {name: appName, category: '4', descr: 'Sample company'}}))).id;
  const there = new Set(
    (await call(listResources({query: {application_id: app, page_size: 100}}))).items.map((r) => r.code),
  );
  for (const [code, name] of [
    ['invoices', 'Invoices 发票'],
    ['reports', 'Reports'],
    ['salaries', 'Salaries'],
  ] as const) {
    if (there.has(code)) continue;
    const actions = [
      {code: 'read', description: ''},
      {code: 'write', description: ''},
    ];
    await call(createResource({body: {application_id: app, type: 'data', code, name, actions}}));
  }
  if (!(await call(listResourceSets({query: {application_id: app}}))).items.some((x) => x.code === 'books')) {
    const set = await call(
      createResourceSet({
        body: {application_id: app, code: 'books', name: 'Books'},
        headers: {'X-Tenant-Id': place.value.tenant},
      }),
    );
    const member = (resource_code: string) => ({resource_type: 'data' as const, resource_code, actions: ['*']});
    await call(addResourceSetMembers({path: {id: set.id}, body: {members: [member('invoices'), member('reports')]}}));
  }
  const company = await call(listTreeNodes({query: {object_code: 'sample-company', page_size: 200}}));
  const nodes = company.items ?? [];
  const node = (code: string) =>
    nodes
      .filter((n) => n.code === code)
      .map((n) => ({identity_type: 'node' as const, identity_id: n.id, identity_name: n.name}));
  const home = (await call(listTreeUsers({query: {user_id: first}})))?.find((m) => m.object_code === 'sample-company');
  const at = nodes.find((n) => n.id === home?.node_id);
  const top = nodes.find((n) => at?.path.includes(n.id) && n.depth === 1) ?? at;
  const data = (code: string, actions: string[]) => ({application_id: app, type: 'data' as const, code, actions});
  const rules = [
    {
      identities: top ? [{identity_type: 'node' as const, identity_id: top.id, identity_name: top.name}] : [],
      rules: [data('invoices', ['read'])],
    },
    {
      identities: node('finance'),
      rules: [{application_id: app, type: 'res_set' as const, code: 'books', actions: ['*']}],
    },
    {identities: node('people'), rules: [data('salaries', ['read', 'write'])]},
    {
      identities: node('support'),
      rules: [
        {...data('reports', ['read']), condition: 'context.ip.startsWith("10.")', description: 'Only from the office'},
      ],
    },
    {identities: node('americas'), rules: [{...data('reports', ['write']), affect: 'deny' as const}]},
  ];
  for (const body of rules) if (body.identities.length) await call(grantAuthRules({body}));
}

async function sampleApp() {
  const page = await call(listApplications({query: {name: appName, page_size: 5}}));
  return page.items?.find((a) => a.name === appName);
}

/** memberships spreads the people over the nodes of a tree; nobody is in every project. */
function memberships(tree: Tree, nodes: string[], users: string[]): NewMembershipWritable[] {
  const share = tree.code === 'sample-projects' ? users.filter((_, i) => i % 3 !== 0) : users;
  return share.map((user_id, i) => {
    const at = (i * 5 + ((i / nodes.length) | 0)) % nodes.length;
    return {
      node_id: nodes[at]!,
      user_id,
      title: titles[i % titles.length],
      role: i < nodes.length ? 'leader' : 'member',
    };
  });
}

/** sampleUsers finds the people by the mark in their employee number. */
export async function sampleUsers(): Promise<string[]> {
  const found = await allPages((page_token) =>
    call(listUsers({query: {keyword: numberPrefix, page_size: 200, page_token, count: 'false'}})),
  );
  return found.filter((u) => u.employee_number.startsWith(numberPrefix)).map((u) => u.id);
}

export async function sampleTrees(): Promise<CoreObject[]> {
  const all = await call(listCoreObjects());
  return (all ?? []).filter((o) => o.code.startsWith(treePrefix));
}

/** remove takes the company away: people, then nodes from the leaves up, then the trees. */
export async function remove(progress: Progress): Promise<void> {
  const users = await sampleUsers(),
    found = await sampleTrees();
  const nodes: {id: string; depth: number; tree: string}[] = [];
  for (const tree of found) {
    const page = await call(listDescendants({path: {id: tree.root_node_id}, query: {page_size: 200}}));
    nodes.push(...(page.items ?? []).map((n) => ({id: n.id, depth: n.depth, tree: tree.code})));
  }
  nodes.sort((a, b) => b.depth - a.depth);
  const of = 1 + nodes.length + found.length;
  let done = 0;
  const app = may('applications:write') ? await sampleApp() : undefined;
  const all = users.length + nodes.length + found.length;
  if (app) await call(deleteApplication({path: {id: app.id}, headers: run(all)})); // its resources, sets and rules go along
  if (users.length) await call(deleteUsers({body: {ids: users}, headers: run(all)}));
  progress(++done, of);
  for (const n of nodes) {
    await call(deleteTreeNode({path: {id: n.id}, query: {object_code: n.tree}}));
    progress(++done, of);
  }
  for (const tree of found) {
    await call(deleteCoreObject({path: {id: tree.id}}));
    progress(++done, of);
  }
}
