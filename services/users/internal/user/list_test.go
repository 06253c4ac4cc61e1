package user

import (
	"compress/gzip"
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/clock"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/docstore/sqlitestore"
	"github.com/idplatform/idplatform/pkg/request"
)

// openOlder opens a copy of a file that an earlier version has written.
func openOlder(t *testing.T, name string) (*Users, context.Context) {
	t.Helper()
	packed, err := os.Open(filepath.Join("testdata", name+".gz"))
	require.NoError(t, err)
	defer packed.Close() //nolint:errcheck // it is only read
	unpacked, err := gzip.NewReader(packed)
	require.NoError(t, err)
	bytes, err := io.ReadAll(unpacked)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, bytes, 0o600))
	ctx := request.With(t.Context(), request.Info{Tenant: "acme", Actor: "test"})
	engine, err := sqlitestore.Open(ctx, sqlitestore.Options{Path: path, Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	store, err := docstore.Open(ctx, engine, clock.System, users.Def())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return &Users{Deps: Deps{Store: store}}, ctx
}

// requireFound searches for words and compares the user names and the total.
func requireFound(t *testing.T, ctx context.Context, s *Users, keyword string, usernames ...string) {
	t.Helper()
	page, err := s.List(ctx, Filter{Keyword: keyword, FullText: true},
		docstore.Paging{Num: 1, Size: 100, Sort: byUsername, Count: true})
	require.NoError(t, err)
	require.EqualValues(t, len(usernames), page.Total, keyword)
	got := []string{}
	for i := range page.Docs {
		u, err := page.Docs[i].Value()
		require.NoError(t, err)
		got = append(got, u.Username)
	}
	require.ElementsMatch(t, usernames, got, keyword)
}

// The file has li1000 … li1019, wang.xiaoming123 and liu. Its words were indexed by their first eight bytes and, in
// another index, whole.
func TestWordsOfOlderFile(t *testing.T) {
	t.Parallel()
	s, ctx := openOlder(t, "revision-3.db")
	require.NoError(t, s.Store.Check(ctx))
	finds := func(keyword string, usernames ...string) {
		t.Helper()
		requireFound(t, ctx, s, keyword, usernames...)
	}
	var all, later []string
	for n := range 20 {
		username := "li" + strconv.Itoa(1000+n)
		if all = append(all, username); n >= 10 {
			later = append(later, username)
		}
	}
	finds("l", append(all, "liu")...)
	finds("li", append(all, "liu")...)
	finds("li1", all...)
	finds("li10", all...)
	finds("li101", later...)
	finds("li1007", "li1007")
	finds("8613", all...)
	finds("86138001", all...)
	finds("861380012341", later...)
	finds("8613800123417", "li1017")
	finds("li acme test 8613", all...)
	finds("xiao", "wang.xiaoming123")
	finds("xiaoming", "wang.xiaoming123")
	finds("xiaoming12", "wang.xiaoming123")
	finds("小明 a 17", "wang.xiaoming123")
	finds("浦东 伟 liu", "liu")
	finds("明小")
	finds("xiaoming2")

	require.NoError(t, docstore.Do(ctx, s.Store, func(tx *docstore.Tx) error {
		wang, err := users.LoadWhere(ctx, tx, docstore.Eq(byUsername, docstore.Text("wang.xiaoming123")), "", 1)
		if err != nil {
			return err
		}
		wang[0].DisplayName, wang[0].Username = "王小华", "wang.xiaohua123"
		if _, err := users.Replace(ctx, tx, wang[0]); err != nil {
			return err
		}
		return users.DeleteWhere(ctx, tx, docstore.Eq(byUsername, docstore.Text("li1017")), nil)
	}))
	finds("xiao", "wang.xiaohua123")
	finds("xiaoming12")
	finds("小华", "wang.xiaohua123")
	finds("小明")
	finds("8613800123417")
	finds("li1017")
	require.NoError(t, s.Store.Check(ctx))
}
