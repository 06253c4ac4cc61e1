package httpapi

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/auth"
	"github.com/idplatform/idplatform/pkg/rest"
	"github.com/idplatform/idplatform/services/users/internal/transfer"
	"github.com/idplatform/idplatform/services/users/internal/user"
)

func (a *api) registerTransfer(s *rest.Server) {
	formats := []string{string(transfer.NDJSON), string(transfer.CSV)}
	rest.Handle(s, rest.Op{
		ID: "import-users", Method: http.MethodPost, Path: "/v1/users/import", Scope: auth.UsersWrite,
		Summary: "Import users",
		Doc: "A stream of any length: a JSON object per line, or CSV with a header of member names. Members are " +
			"those of a new user, and `password_hash` (argon2, bcrypt, PBKDF2 or scrypt); with `password` or " +
			"`password_hash` the scope `users:secrets` is needed. A former password is not refused, so that an " +
			"import can be repeated. Read-only members are ignored. A record that fails does not affect the others; " +
			"the answer has a line for each record, in order. Sent again with the same `Idempotency-Key` within " +
			"24 h, an interrupted import continues where it stopped.",
		Streams: true, Consumes: formats, ContentTypes: []string{string(transfer.NDJSON)},
		Errors: []apperr.Kind{apperr.TooLarge, apperr.UnsupportedMediaType, apperr.IdempotencyKeyReused,
			apperr.RequestInProgress},
		Request:  `{"username":"li.wei","display_name":"李伟"}` + "\n",
		Response: `{"line":1,"status":"created","id":"1048577"}` + "\n",
	}, a.importUsers)
	rest.Handle(s, rest.Op{
		ID: "export-users", Method: http.MethodGet, Path: "/v1/users/export", Scope: auth.UsersRead,
		Summary: "Export users",
		Doc: "In a form that import reads, in the order of ids, without secrets. The filters are those of the " +
			"list.",
		Streams: true, ContentTypes: formats,
		Response: `{"id":"1048577","tenant_id":"acme","username":"li.wei","display_name":"李伟"}` + "\n",
	}, a.exportUsers)
}

// idle is how long a stream may pause.
const idle = time.Minute

type importInput struct {
	OnConflict string `query:"on_conflict" enum:"fail,skip,update" default:"fail" doc:"What happens to a record whose username, email or mobile is taken: it fails, is skipped, or updates the user with its username"`
	Invite     bool   `query:"invite" doc:"Invite the new users who may sign in, and have a mail address and no password: each gets a mail with a link, by and by, within the limits of invitations. Needs the scope users:secrets"`
	rest.Upload
}

func (a *api) importUsers(ctx context.Context, in *importInput) (rest.Stream, error) {
	format, err := transfer.ParseFormat(in.Request.Header.Get("Content-Type"))
	if err != nil {
		return rest.Stream{}, err
	}
	options := transfer.ImportOptions{
		Format: format, Secrets: auth.PrincipalFrom(ctx).Has(auth.UsersSecrets),
		ImportOptions: user.ImportOptions{OnConflict: user.OnConflict(in.OnConflict), Invite: in.Invite},
	}
	if options.Invite && !options.Secrets {
		return rest.Stream{}, apperr.New(apperr.Forbidden, "invite needs the scope %s", auth.UsersSecrets)
	}
	if keys := in.Request.Header.Values("Idempotency-Key"); len(keys) > 0 {
		if err := rest.CheckIdempotencyKey(keys); err != nil {
			return rest.Stream{}, err
		}
		options.Key = rest.KeyOf(ctx, keys[0])
	}
	results, err := a.transfers.Import(ctx, in.Patient(idle), options)
	if err != nil {
		return rest.Stream{}, err
	}
	return rest.Stream{ContentType: string(transfer.NDJSON), Replayed: results.Replayed,
		Write: func(w http.ResponseWriter) error {
			defer results.Close()
			_, err := results.WriteTo(rest.PatientWriter(w, idle))
			return err
		}}, nil
}

type exportInput struct {
	UserFilter
	Format string `query:"format" enum:"ndjson,csv" doc:"Instead of the header Accept; NDJSON unless one of them says CSV"`
	Accept string `header:"Accept" hidden:"true"`
}

func (a *api) exportUsers(ctx context.Context, in *exportInput) (rest.Stream, error) {
	filter, err := in.read()
	if err != nil {
		return rest.Stream{}, err
	}
	format := transfer.NDJSON
	if in.Format == "csv" || in.Format == "" && strings.Contains(in.Accept, string(transfer.CSV)) {
		format = transfer.CSV
	}
	return rest.Stream{ContentType: string(format) + "; charset=utf-8", Write: func(w http.ResponseWriter) error {
		return a.transfers.Export(ctx, rest.PatientWriter(w, idle), format, filter)
	}}, nil
}
