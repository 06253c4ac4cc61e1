// `make generate` writes the document and runs this (adr/0051).
export default {
  input: '../../gateway/openapi.json',
  output: {path: 'src', clean: true, postProcess: []},
  plugins: [
    {name: '@hey-api/typescript', enums: false},
    {name: '@hey-api/client-fetch'},
    {name: '@hey-api/sdk'},
  ],
};
