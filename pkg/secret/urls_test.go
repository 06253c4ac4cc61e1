package secret

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestMaskURLs(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                               "",
		"nats://127.0.0.1:4222":                          "nats://127.0.0.1:4222",
		"nats://user:pass@host:4222":                     "nats://******@host:4222",
		"nats://token@host":                              "nats://******@host",
		"nats://a:b@h1:4222,nats://c:d@h2:4222":          "nats://******@h1:4222,nats://******@h2:4222",
		"nats://a:b@h1,c:d@h2":                           "nats://******@h2",
		"user:pass@host:4222,second:word@other":          "******@host:4222,******@other",
		"tls://u:p@ss/w@rd@host":                         "tls://******@host",
		"mongodb+srv://u:p@h1,h2/db?tls=true":            "mongodb+srv://******@h1,h2/db?tls=true",
		"mongodb://h/?keyFilePassword=hush&w=1":          "mongodb://h/?keyFilePassword=******&w=1",
		"https://h/v1/traces?api-key=hush&x=1":           "https://h/v1/traces?api-key=******&x=1",
		`parse "https://u:p@h:x/": invalid port`:         `parse "https://******@h:x/": invalid port`,
		"issuer=https://i;jwks=https://u:p@h;scopes=a b": "issuer=https://i;jwks=https://******@h;scopes=a b",
		"write to (nats://a:b@h): no such host":          "write to (nats://******@h): no such host",
		"no URL: li.wei@acme.test wrote at 10:30":        "no URL: li.wei@acme.test wrote at 10:30",
	} {
		assert.Equal(t, want, MaskURLs(text))
	}
}

func TestMaskError(t *testing.T) {
	t.Parallel()
	assert.NoError(t, MaskError(nil))
	plain := errors.New("plain")
	assert.Same(t, plain, MaskError(plain))
	cause := &fs.PathError{Op: "dial", Path: "nats://u:p@h", Err: fs.ErrNotExist}
	masked := MaskError(fmt.Errorf("connect: %w", cause))
	assert.EqualError(t, masked, "connect: dial nats://******@h: file does not exist")
	assert.ErrorIs(t, masked, fs.ErrNotExist)
	found, ok := errors.AsType[*fs.PathError](masked)
	assert.True(t, ok)
	assert.Same(t, cause, found)
}

func FuzzMaskURLs(f *testing.F) {
	f.Add("x", "y")
	f.Fuzz(func(t *testing.T, user, password string) {
		text := "nats://" + user + ":" + password + "@host"
		if scheme.MatchString(user + ":" + password + "@host") {
			return
		}
		for _, r := range user + password {
			if r <= ' ' {
				return
			}
		}
		assert.Equal(t, "nats://******@host", MaskURLs(text))
	})
}
