package apperr_test

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/apperr"
)

func TestKindOf(t *testing.T) {
	t.Parallel()
	missing := apperr.Missing("user")
	for name, c := range map[string]struct {
		err  error
		want apperr.Kind
	}{
		"none":    {nil, ""},
		"ours":    {missing, apperr.NotFound},
		"wrapped": {fmt.Errorf("find: %w", missing), apperr.NotFound},
		"joined":  {errors.Join(io.EOF, missing), apperr.NotFound},
		"foreign": {io.EOF, apperr.Internal},
	} {
		require.Equal(t, c.want, apperr.KindOf(c.err), name)
		require.Equal(t, c.want == apperr.NotFound, apperr.IsNotFound(c.err), name)
	}
}

func TestErrorIsForLogs(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]*apperr.Error{
		"internal":                apperr.New(apperr.Internal, ""),
		"not_found: no such user": apperr.Missing("user"),
		"unavailable: the store does not answer: EOF":                     apperr.Away("the store", io.EOF),
		"already_exists: a unique value is taken; a is taken; b is taken": apperr.Taken("a", "b"),
		"invalid_parameters: size must lie in 1…200; size must lie in 1…200: unexpected EOF": apperr.
			Invalid("size", "must lie in 1…%d", 200).Because(io.ErrUnexpectedEOF),
	} {
		require.EqualError(t, err, want)
	}
}

func TestBecauseCopiesTheError(t *testing.T) {
	t.Parallel()
	shared := apperr.Missing("user")
	because := shared.Because(io.EOF)
	require.ErrorIs(t, because, io.EOF)
	require.NotErrorIs(t, shared, io.EOF)
	require.Equal(t, shared.Kind, because.Kind)
}

func TestAwayHasRetryAfter(t *testing.T) {
	t.Parallel()
	err := apperr.Away("the store", io.EOF)
	require.Positive(t, err.RetryAfter)
	require.LessOrEqual(t, err.RetryAfter, time.Minute)
	require.ErrorIs(t, err, io.EOF)
	require.NotContains(t, err.Detail, "EOF", "the cause is for logs")
}

func TestFaults(t *testing.T) {
	t.Parallel()
	var faults apperr.Faults
	require.NoError(t, faults.Err())
	faults.Check(true, "body.a", "never")
	require.NoError(t, faults.Err())
	faults.Check(false, "body.a", "must be one of %d", 3)
	require.Equal(t, "body.a must be one of 3", detail(t, faults.Err()))
	faults.Add("body.b", "is missing")
	faults.Add("body.c", "is missing")
	require.Equal(t, "body.a must be one of 3 (and 2 more)", detail(t, faults.Err()))
	refusal, _ := errors.AsType[*apperr.Error](faults.Err())
	require.Equal(t, []apperr.Fault{
		{Location: "body.a", Message: "must be one of 3"},
		{Location: "body.b", Message: "is missing"},
		{Location: "body.c", Message: "is missing"},
	}, refusal.Faults)
}

func TestFaultsWithin(t *testing.T) {
	t.Parallel()
	var faults apperr.Faults
	item := faults.Within(apperr.Item("items", 3))
	item.Check(false, "email", "must be an address")
	item.Within("size").Check(false, "width", "must be at least %d", 1)
	item.Add("", "is odd")
	item.Add("[1]", "is odd")
	faults.Within("").Add("name", "is odd")
	refusal, _ := errors.AsType[*apperr.Error](faults.Err())
	require.Equal(t, []apperr.Fault{
		{Location: "items[3].email", Message: "must be an address"},
		{Location: "items[3].size.width", Message: "must be at least 1"},
		{Location: "items[3]", Message: "is odd"}, {Location: "items[3][1]", Message: "is odd"},
		{Location: "name", Message: "is odd"},
	}, refusal.Faults)
}

func TestRelocate(t *testing.T) {
	t.Parallel()
	move := func(location string) string { return apperr.Below("body", location) }
	for name, row := range map[string]struct{ err, want error }{
		"one": {apperr.Invalid("email", "is bad"), apperr.Invalid("body.email", "is bad")},
		"all": {apperr.Invalid("", "is bad"), apperr.Invalid("body", "is bad")},
		"a detail of its own": {
			&apperr.Error{Kind: apperr.AlreadyExists, Detail: "it is taken", RetryAfter: 1,
				Faults: []apperr.Fault{{Location: "a", Message: "x"}, {Location: "b", Message: "y"},
					{Location: "a", Message: "x"}}},
			&apperr.Error{Kind: apperr.AlreadyExists, Detail: "it is taken", RetryAfter: 1,
				Faults: []apperr.Fault{{Location: "body.a", Message: "x"}, {Location: "body.b", Message: "y"}}},
		},
		"wrapped": {
			fmt.Errorf("import: %w", apperr.Invalid("a", "is bad").Because(io.EOF)),
			apperr.Invalid("body.a", "is bad").Because(io.EOF),
		},
		"no faults":    {apperr.Missing("user"), apperr.Missing("user")},
		"not an Error": {io.EOF, io.EOF},
		"nil":          {nil, nil},
	} {
		require.Equal(t, row.want, apperr.Relocate(row.err, move), name)
	}
	err := apperr.Invalid("email", "is bad")
	require.Error(t, apperr.Relocate(err, move))
	require.Equal(t, "email", err.Faults[0].Location, "the original error is not changed")
}

func detail(t *testing.T, err error) string {
	t.Helper()
	refusal, ok := errors.AsType[*apperr.Error](err)
	require.True(t, ok)
	require.Equal(t, apperr.InvalidParameters, refusal.Kind)
	return refusal.Detail
}
