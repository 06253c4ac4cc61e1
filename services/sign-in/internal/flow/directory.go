package flow

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/request"
	"github.com/idplatform/idplatform/pkg/textindex"
	"github.com/idplatform/idplatform/services/sign-in/internal/federation"
	"github.com/idplatform/idplatform/services/sign-in/internal/proof"
)

// The wrong passwords of an entry of a directory that are let through: the directory may lock the account after more.
const (
	guessesAtOnce    = 5
	guessesPerSecond = 1.0 / 300
)

var errTooManyOfName = apperr.New(apperr.RateLimited, "there were too many wrong passwords for the name")

// askForDirectory makes the page of a view the one that asks for a password of a directory, if the person has chosen
// that, or if there is nothing else to choose.
func (view *View) askForDirectory() {
	source := view.source(view.Flow.Directory)
	switch {
	case source != nil && (view.linksBy(source) || view.shows(source)):
	case view.Flow.Directory == "" && len(view.Methods) == 1 && len(view.Sources()) == 1:
		if source = &view.Sources()[0]; view.Kind != SignIn || !federation.IsDirectory(source.ProviderCode) {
			return
		}
	default:
		return
	}
	view.under, view.Kind, view.Through, view.directory = view.Kind, AskDirectory, source.Name, source
}

// shows reports whether the page of a view offers to sign in through a source.
func (view *View) shows(source *Source) bool {
	return (view.step() == SignIn || view.step() == EnterFactor) && view.Flow.Linking == "" &&
		slices.Contains(view.Methods, proof.Upstream(source.ID))
}

// step is the page of a view, or the one under it if a password of a directory is asked for.
func (view *View) step() Kind {
	if view.Kind == AskDirectory {
		return view.under
	}
	return view.Kind
}

// CanGoBack reports whether the page that asks for a password of a directory hides another one.
func (view *View) CanGoBack() bool { return view.Flow.Directory != "" }

// enterDirectory checks the name and the password that a person has typed for a directory.
func (e *Engine) enterDirectory(ctx context.Context, f *Flow, now View, form Form, v Visitor) (View, error) {
	source, name := now.directory, strings.TrimSpace(form.LoginName)
	view := View{
		Kind: Leave, Flow: f, SentFrom: AskDirectory, Through: now.Through, Methods: now.Methods, sources: now.sources,
	}
	begins := now.under == SignIn
	if begins {
		f.LoginName = name[:min(len(name), maxLoginName)]
	}
	who, err := e.checkDirectory(ctx, source, name, form.Password, v)
	switch {
	case errors.Is(err, errTooMany), errors.Is(err, errTooManyOfName):
		view.Kind, view.OfName = TooMany, errors.Is(err, errTooManyOfName)
		return view, nil
	case errors.Is(err, federation.ErrWrong) && begins:
		return view, e.refused(ctx, f, Proven{Notice: NoticeWrong}, v)
	case errors.Is(err, federation.ErrWrong):
		f.Notice = NoticeWrong
		return view, e.save(ctx, f, v.Browser, tellFailed(f, v, NoticeWrong))
	}
	if notice, err := e.noticeOf(ctx, source.ID, err); notice != "" || err != nil {
		if err != nil {
			return unlessAway(view, err)
		}
		f.Notice = notice
		return view, e.save(ctx, f, v.Browser, nil)
	}
	links := now.linksBy(source)
	f.Directory = ""
	if links {
		return e.bringsLink(ctx, f, source, who, v)
	}
	return e.identified(ctx, f, now, source, who, v)
}

// checkDirectory asks a directory for who has a name and a password, within the limits of guesses: those of an address,
// as for passwords of this platform, and of the entry. The error may be errTooMany, errTooManyOfName or
// federation.ErrWrong.
func (e *Engine) checkDirectory(ctx context.Context, source *Source, name, password string, v Visitor) (
	federation.Identity, error,
) {
	var none federation.Identity
	if len(name) > maxLoginName || len(password) > maxPassword {
		return none, federation.ErrWrong
	}
	attempt, err := e.Admit(ctx, DirectoryPassword, v, name)
	if err != nil {
		return none, err
	}
	if attempt == nil {
		return none, errTooMany
	}
	counted := "" // what a wrong password counts for
	who, err := e.Federation.Password(ctx, source.ID, federation.Login{
		Name: name, Password: password, MayTry: func(ctx context.Context, entry string) error {
			counted = request.Tenant(ctx) + " " + source.ID + " " + textindex.Key(entry)
			if e.entries.Empty(counted) == 0 {
				return nil
			}
			known, err := attempt.known(ctx)
			if counted += " " + v.Browser; err == nil && (!known || e.entries.Empty(counted) > 0) {
				err = errTooManyOfName
			}
			return err
		},
	})
	if err != nil && !errors.Is(err, federation.ErrWrong) {
		return none, err // it is no fault of the person
	}
	if err != nil && counted != "" {
		e.entries.Take(counted)
	}
	told, failed := attempt.Settle(ctx, err == nil)
	switch {
	case failed != nil:
		return none, failed
	case !told:
		return none, errTooMany
	}
	return who, err
}
