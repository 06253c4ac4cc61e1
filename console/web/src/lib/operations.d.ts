// Made by the bundler of the SDK: the ids of the operations that write.
declare module 'idp:operations' {
  const operations: Record<string, string>; // 'POST /v1/users' → 'create-user'
  export default operations;
}
