// The panel of a record, its form, and the dialogs that make and delete it.
export * from './conflict';
export * from './draft';
export * from './fields';
export * from './form-dialog';
export * from './menu';
export * from './panel';
export * from './record-panel';
export * from './save';
