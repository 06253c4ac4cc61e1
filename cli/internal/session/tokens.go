package session

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"time"

	idp "github.com/idplatform/idplatform/sdk/go"
)

// keptToken is a token as the cache has it.
type keptToken struct {
	Token string    `json:"token"`
	Until time.Time `json:"until"`
}

// keptTokens are the tokens of a context. Commands that come soon after each other share one, in a file that only its
// owner can read. The secret is fetched only if a token must be.
type keptTokens struct {
	session *Session
	file    string
	source  func() (*idp.CachedTokens, error)

	mu     sync.Mutex
	kept   keptToken
	inner  *idp.CachedTokens // nil: not made yet
	loaded bool              // the file was read, or its token was refused
}

// Token returns the token, or gets another one.
func (t *keptTokens) Token(ctx context.Context) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.loaded {
		t.loaded = true
		if text, err := os.ReadFile(t.file); err == nil {
			_ = json.Unmarshal(text, &t.kept) // a damaged file is none
		}
	}
	if t.kept.Token != "" && time.Now().Before(t.kept.Until) {
		return t.kept.Token, nil
	}
	if t.inner == nil {
		inner, err := t.source()
		if err != nil {
			return "", err
		}
		t.inner = inner
	}
	token, err := t.inner.Token(ctx)
	if err != nil {
		return "", err
	}
	t.kept = keptToken{token, t.inner.Until()}
	_ = t.session.cache(t.file, t.kept) // without it the next command gets a token of its own
	return token, nil
}

// Forget makes the next call of Token get another token.
func (t *keptTokens) Forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.loaded, t.kept = true, keptToken{}
	if t.inner != nil {
		t.inner.Forget()
	}
}

// tokenFile is where the token of a context is kept: it has another name once the context goes elsewhere.
func (s *Session) tokenFile(credentials idp.ClientCredentials) string {
	text, _ := json.Marshal([]string{credentials.URL, credentials.ClientID, credentials.Tenant, credentials.Audience})
	return filepath.Join(s.CachePath, tokenPrefix(s.name)+shortHash(text)+".json")
}

// ForgetTokens removes what the cache has of a context.
func ForgetTokens(cachePath, name string) {
	files, _ := filepath.Glob(filepath.Join(cachePath, tokenPrefix(name)+"*.json")) // the pattern is right
	for _, file := range files {
		_ = os.Remove(file) // the token ends by itself
	}
}

func tokenPrefix(name string) string { return "token-" + shortHash([]byte(name)) + "-" }

func shortHash(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}
