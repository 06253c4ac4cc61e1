// `make generate` writes the document and runs this (adr/0051).
export default {
  input: '../../bin/openapi.json',
  // Node and `moduleResolution: nodenext` take only imports with the file's extension.
  output: {path: 'src', clean: true, postProcess: [], importFileExtension: '.js'},
  plugins: [
    {name: '@hey-api/typescript', enums: false},
    {name: '@hey-api/client-fetch'},
    {name: '@hey-api/sdk'},
  ],
};
