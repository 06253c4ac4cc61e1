package plan

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	idp "github.com/idplatform/idplatform/sdk/go"
)

// losing is a platform that does not answer a write, or never gets it.
type losing struct {
	*oneObject
	arrives bool
	err     error // of the next write
	before  func()
}

func (l *losing) Write(ctx context.Context, w Write, try bool) (map[string]any, error) {
	err := l.err
	if l.err = nil; err == nil {
		return l.oneObject.Write(ctx, w, try)
	}
	if l.before != nil {
		l.before()
	}
	if l.arrives {
		_, _ = l.oneObject.Write(ctx, w, try)
	}
	return nil, err
}

// TestStateIsSavedOnce saves a state whose answer is lost, first when it is made, then when it is changed.
func TestStateIsSavedOnce(t *testing.T) {
	t.Parallel()
	lost := &idp.LostError{Method: http.MethodPut, MayBeDone: true, Err: errors.New("unexpected EOF")}
	unknown := &idp.Problem{Status: http.StatusBadGateway, Code: idp.CodeOutcomeUnknown}
	for name, err := range map[string]error{"lost": lost, "unknown": unknown} {
		for way, arrives := range map[string]bool{"on the way back": true, "on the way there": false} {
			t.Run(name+" "+way, func(t *testing.T) {
				t.Parallel()
				platform := &losing{oneObject: &oneObject{}, arrives: arrives}
				s := &State{byRef: map[Ref]*Applied{}, store: &bucketStore{platform: platform, set: "crm"}}
				for i := range 2 {
					ref := Ref{application, string(rune('a' + i))}
					s.put(ref, "1048577", true, map[string]any{"big": 12345678901234567})
					platform.err = err
					require.NoError(t, s.save(t.Context()))
					require.NoError(t, s.save(t.Context()), "the version is known")
					assert.Equal(t, 2*(i+1), platform.writes)
				}
			})
		}
	}
}

// TestStateOfAnother refuses to write over a state that another process has written meanwhile.
func TestStateOfAnother(t *testing.T) {
	t.Parallel()
	platform := &losing{oneObject: &oneObject{}}
	mine := &State{byRef: map[Ref]*Applied{}, store: &bucketStore{platform: platform, set: "crm"}}
	other := &State{byRef: map[Ref]*Applied{}, store: &bucketStore{platform: platform.oneObject, set: "crm"}}
	platform.err = &idp.LostError{Method: http.MethodPut, MayBeDone: true, Err: errors.New("unexpected EOF")}
	platform.before = func() {
		other.put(Ref{application, "other"}, "1048577", true, nil)
		require.NoError(t, other.save(t.Context()))
	}
	mine.put(Ref{application, "mine"}, "1048578", true, nil)
	require.ErrorContains(t, mine.save(t.Context()), "unexpected EOF")
	require.Equal(t, idp.CodeVersionMismatch, idp.CodeOf(mine.save(t.Context())))
	assert.Equal(t, 1, platform.writes)
}
