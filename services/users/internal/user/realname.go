package user

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode/utf8"

	"github.com/idplatform/idplatform/pkg/apperr"
	"github.com/idplatform/idplatform/pkg/docstore"
	"github.com/idplatform/idplatform/pkg/textindex"
	"github.com/idplatform/idplatform/services/users/internal/realname"
)

// RealName is what a user's identity is verified with. Type is cn_resident_id if it is empty.
type RealName struct {
	Name, Number, Type string
}

// residentID is the type of number whose form is checked here.
const residentID = "cn_resident_id"

// VerifyRealName records a user's real name and number. A resident id of the right form becomes verified, any other
// number pending. If a verifier is configured, it decides instead. Only a keyed hash and a mask of the number are
// stored. No two users of a tenant can have the same number. The error is apperr.NotFound, InvalidParameters,
// AlreadyExists, InvalidState (resigned) or Unavailable (the verifier).
func (s *Users) VerifyRealName(ctx context.Context, id string, r RealName) (Doc, error) {
	if r.Type == "" {
		r.Type = residentID
	}
	r.Number, r.Type = realname.Normalize(r.Number), textindex.Key(strings.TrimSpace(r.Type))
	var faults apperr.Faults
	faults.Check(r.Name != "", "real_name", "must not be empty")
	faults.Text("real_name", r.Name, maxText)
	faults.Text("id_type", r.Type, maxText)
	faults.Text("id_number", r.Number, maxText)
	faults.Check(utf8.RuneCountInString(r.Number) >= 4, "id_number", "must have at least 4 characters")
	if r.Type == residentID {
		faults.Check(realname.CheckResidentID(r.Number, s.Store.Now().Std()) == nil, "id_number",
			"is not a resident id number")
	}
	if err := faults.Err(); err != nil {
		return Doc{}, err
	}
	if _, err := s.Get(ctx, id); err != nil { // the verifier gets nothing about unknown users
		return Doc{}, err
	}
	status, err := s.realNameStatus(ctx, r)
	if err != nil {
		return Doc{}, err
	}
	mac := hmac.New(sha256.New, s.HashKey)
	_, _ = mac.Write([]byte(r.Type + "\x00" + r.Number))
	hash := hex.EncodeToString(mac.Sum(nil))
	if status == RealNameRejected {
		hash = "" // the number is not this user's, and its owner must be able to register it
	}

	return s.transition(ctx, id, func(ctx context.Context, tx *docstore.Tx, u *User) (Doc, error) {
		if u.Status == Resigned {
			return Doc{}, errResigned
		}
		if err := editAccount(ctx, tx, id, func(a *account) error {
			a.IDNumber = hash
			return nil
		}); err != nil {
			return Doc{}, err
		}
		u.RealName, u.RealNameStatus, u.IDNumberMasked = r.Name, status, realname.Mask(r.Number)
		return users.Replace(ctx, tx, u)
	})
}

func (s *Users) realNameStatus(ctx context.Context, r RealName) (RealNameStatus, error) {
	if s.Verifier != nil && !docstore.IsDryRun(ctx) {
		ok, err := s.Verifier.Verify(ctx, realname.Claim{Name: r.Name, Number: r.Number, Type: r.Type})
		switch {
		case err != nil:
			return "", err
		case ok:
			return RealNameVerified, nil
		}
		return RealNameRejected, nil
	}
	if r.Type == residentID {
		return RealNameVerified, nil
	}
	return RealNamePending, nil
}
