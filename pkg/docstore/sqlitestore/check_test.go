package sqlitestore_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCheckFindsDamage(t *testing.T) {
	t.Parallel()
	for name, damage := range map[string]string{
		"a list entry is missing":        `DELETE FROM "c_notes.words" WHERE value = 'rare3'`,
		"there is a list entry too many": `INSERT INTO "c_notes.words" (tenant, value, first, more) SELECT tenant, 'other', rid, x'' FROM c_notes LIMIT 1`,
		"a list entry is elsewhere":      `UPDATE "c_notes.keys" SET rid = rid + 1000 WHERE value = 'k3'`,
		"a key is wrong":                 `UPDATE c_notes SET k_title = 'other' WHERE id = '10003'`,
		"a row's tenant is wrong":        `UPDATE c_notes SET tenant = 't2' WHERE id = '10003'`,
		"a row's id is wrong":            `UPDATE c_notes SET id = 'other' WHERE id = '10003'`,
		"a row's version is wrong":       `UPDATE c_notes SET version = 7 WHERE id = '10003'`,
		"a row's Due time is wrong":      `UPDATE c_notes SET due = 7 WHERE id = '10003'`,
		"a row's lists are wrong":        `UPDATE c_notes SET lists = x'ff' WHERE id = '10003'`,
		"a document is not JSON":         `UPDATE c_notes SET doc = x'ff' WHERE id = '10003'`,
		"a document is missing":          `DELETE FROM c_notes WHERE id = '10003'`,
		"a counter is wrong":             `UPDATE counters SET n = n + 1`,
		"a counter is missing":           `DELETE FROM counters`,
		"a counter has no documents":     `INSERT INTO counters (collection, tenant, n) VALUES ('notes', 't9', 1)`,
		"a row without its counters":     `INSERT INTO c_notes SELECT rid + 1000, 't3', id, version, counts, due, k_title, k_code, k_created, k_shelf, lists, doc FROM c_notes WHERE id = '10003'`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := open(t)
			for i := range 5 {
				require.NoError(t, f.insert(tenant(t), newNote(i)))
			}
			require.NoError(t, f.Check(t.Context()))
			f.script(t, damage)
			require.Error(t, f.Check(t.Context()))
		})
	}
}

func TestCheckFindsDamagedPages(t *testing.T) {
	t.Parallel()
	f := open(t)
	for i := range 300 {
		require.NoError(t, f.insert(tenant(t), newNote(i)))
	}
	require.NoError(t, f.Close())
	file, err := os.OpenFile(f.path, os.O_RDWR, 0)
	require.NoError(t, err)
	info, err := file.Stat()
	require.NoError(t, err)
	for at := int64(8192); at < info.Size(); at += 4096 {
		_, err = file.WriteAt([]byte("damage"), at+2)
		require.NoError(t, err)
	}
	require.NoError(t, file.Close())
	broken := openAt(t, f.path, notes)
	require.Error(t, broken.Check(t.Context()))
}
