package auth

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestScopes(t *testing.T) {
	t.Parallel()
	s, unknown := ParseScopes("  users:read kv:write\tkv:write openid ")
	require.Equal(t, NewScopes(KVWrite, UsersRead), s)
	require.Equal(t, []string{"openid"}, unknown)
	require.True(t, s.Has(UsersRead))
	require.False(t, s.Has(UsersWrite))
	require.False(t, s.Has(PlatformAdmin))
	require.False(t, s.Has("openid"))
	require.False(t, Scopes(0).Has(""))

	for _, scope := range scopes {
		require.True(t, NewScopes(PlatformAdmin).Has(scope), scope)
		require.True(t, AllScopes.Has(scope), scope)
		require.Equal(t, scope == PlatformAdmin, NewScopes(scope).Has(PlatformAdmin), scope)
	}
	require.Len(t, AllScopes.List(), len(scopes))
	require.True(t, AllScopes.Within(NewScopes(PlatformAdmin)))
	require.True(t, NewScopes(UsersRead).Within(s))
	require.False(t, NewScopes(UsersRead, JobsRead).Within(s))
	require.False(t, NewScopes(PlatformAdmin).Within(s))
}

func TestLacking(t *testing.T) {
	t.Parallel()
	as := func(scopes ...Scope) context.Context {
		return WithPrincipal(t.Context(), &Principal{Scopes: NewScopes(scopes...)})
	}
	wanted := NewScopes(UsersRead, KVWrite)
	require.Equal(t, UsersRead, wanted.Lacking(as()))
	require.Equal(t, KVWrite, wanted.Lacking(as(UsersRead, KVRead)))
	require.Empty(t, wanted.Lacking(as(UsersRead, KVWrite)))
	require.Empty(t, wanted.Lacking(as(PlatformAdmin)))
	require.Equal(t, PlatformAdmin, NewScopes(PlatformAdmin).Lacking(as(AllScopes.List()[:5]...)))
	require.Empty(t, wanted.Lacking(t.Context()), "work of the platform itself")
}

func TestScopesSurviveTheirText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := Scopes(rapid.Uint32Range(0, uint32(AllScopes)).Draw(t, "set"))
		back, unknown := ParseScopes(s.String())
		require.Equal(t, s, back)
		require.Empty(t, unknown)
		require.Equal(t, s, NewScopes(s.List()...))
	})
}
