// Package directorytest is a directory (LDAP) in which a test puts people.
package directorytest

import (
	"net"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/hashicorp/go-hclog"
	"github.com/jimlambrt/gldap"
	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/testkit/wait"
)

// The reader of the directory, and the base.
const (
	Reader   = "cn=reader,dc=acme,dc=test"
	Password = "reader's password"
	Base     = "ou=people,dc=acme,dc=test"
)

// Entry is a person. Attributes are compared without regard to case.
type Entry struct {
	Password   string
	Attributes map[string][]string
}

// Directory is a directory.
type Directory struct {
	URL string

	mu sync.Mutex
	// Entries are by distinguished name.
	Entries map[string]Entry
	// Binds are the names that a bind was tried with, and Refuses the result code of every bind of a person, if it is
	// not 0.
	Binds   []string
	Refuses int
}

// Start starts a directory, for as long as the test lasts. It speaks without encryption.
func Start(t testing.TB) *Directory {
	t.Helper()
	d := &Directory{Entries: map[string]Entry{}}
	mux, err := gldap.NewMux()
	require.NoError(t, err)
	require.NoError(t, mux.Bind(func(w *gldap.ResponseWriter, r *gldap.Request) {
		code := gldap.ResultInvalidCredentials
		if m, err := r.GetSimpleBindMessage(); err == nil {
			code = d.bind(m.UserName, string(m.Password))
		}
		_ = w.Write(r.NewBindResponse(gldap.WithResponseCode(code)))
	}))
	require.NoError(t, mux.Search(func(w *gldap.ResponseWriter, r *gldap.Request) {
		code := gldap.ResultNoSuchObject
		if m, err := r.GetSearchMessage(); err == nil && m.BaseDN == Base {
			code = gldap.ResultSuccess
			for dn, entry := range d.search(m.Filter) {
				_ = w.Write(r.NewSearchResponseEntry(dn, gldap.WithAttributes(entry.Attributes)))
			}
		}
		_ = w.Write(r.NewSearchDoneResponse(gldap.WithResponseCode(code)))
	}))
	server, err := gldap.NewServer(gldap.WithLogger(hclog.NewNullLogger()))
	require.NoError(t, err)
	require.NoError(t, server.Router(mux))
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	done := make(chan error, 1)
	go func() { done <- server.Run(address) }()
	t.Cleanup(func() {
		require.NoError(t, server.Stop())
		<-done
	})
	wait.Until(t, server.Ready)
	d.URL = "ldap://" + address
	return d
}

// Change changes the directory while it runs.
func (d *Directory) Change(change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
}

func (d *Directory) bind(dn, password string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if dn == Reader {
		if password == Password {
			return gldap.ResultSuccess
		}
		return gldap.ResultInvalidCredentials
	}
	d.Binds = append(d.Binds, dn)
	entry, ok := d.Entries[dn]
	switch {
	case d.Refuses != 0:
		return d.Refuses
	case password == "": // RFC 4513 §5.1.2
		return gldap.ResultSuccess
	case !ok || entry.Password != password:
		return gldap.ResultInvalidCredentials
	}
	return gldap.ResultSuccess
}

// equality is a test of a filter, such as (uid=ann).
var equality = regexp.MustCompile(`\(([A-Za-z]+)=([^()]*)\)`)

// search finds the entries for which all equalities of a filter hold. A * stands for any value.
func (d *Directory) search(filter string) map[string]Entry {
	d.mu.Lock()
	defer d.mu.Unlock()
	found := map[string]Entry{}
	for dn, entry := range d.Entries {
		holds := true
		for _, test := range equality.FindAllStringSubmatch(filter, -1) {
			holds = holds && entry.has(test[1], test[2])
		}
		if holds {
			found[dn] = entry
		}
	}
	return found
}

var escaped = regexp.MustCompile(`\\[0-9a-f]{2}`)

func (e Entry) has(name, value string) bool {
	value, anything := escaped.ReplaceAllStringFunc(value, func(text string) string {
		code, _ := strconv.ParseUint(text[1:], 16, 8)
		return string([]byte{byte(code)})
	}), value == "*"
	for attribute, values := range e.Attributes {
		for _, one := range values {
			if strings.EqualFold(attribute, name) && (anything || strings.EqualFold(one, value)) {
				return true
			}
		}
	}
	return false
}
