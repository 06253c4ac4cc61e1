package session

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/idplatform/idplatform/cli/internal/operations"
	idp "github.com/idplatform/idplatform/sdk/go"
)

// cachedDocument is the OpenAPI document of a server as the cache has it.
type cachedDocument struct {
	ETag     string          `json:"etag"`
	Document json.RawMessage `json:"document"`
}

// ServerTable reads the table of operations from the platform, so that an old program reaches a newer platform's. The
// document is kept with its ETag, and sent again only if it has changed.
func (s *Session) ServerTable(ctx context.Context) (*operations.Table, error) {
	client, err := s.Client()
	if err != nil {
		return nil, err
	}
	file := s.cacheFile("openapi")
	var kept cachedDocument
	if text, err := os.ReadFile(file); err != nil || json.Unmarshal(text, &kept) != nil {
		kept = cachedDocument{} // there is none, or it is damaged: it comes anew
	}
	r := idp.Request{Method: http.MethodGet, Path: "/openapi.json", Open: true}
	var options []idp.Option
	if kept.ETag != "" {
		options = append(options, idp.IfNoneMatch(kept.ETag))
	}
	response, err := client.Do(ctx, r, options...)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusNotModified {
		return operations.Parse(kept.Document)
	}
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return nil, err
	}
	table, err := operations.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.context.URL, err)
	}
	return table, s.cache(file, cachedDocument{response.Header.Get("ETag"), text})
}

// cacheFile is where something of this server is kept.
func (s *Session) cacheFile(kind string) string {
	sum := sha256.Sum256([]byte(s.context.URL))
	return filepath.Join(s.CachePath, kind+"-"+hex.EncodeToString(sum[:8])+".json")
}

func (s *Session) cache(file string, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	temporary, err := os.CreateTemp(filepath.Dir(file), ".cache-*")
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name())
	_, err = temporary.Write(text)
	if err := errors.Join(err, temporary.Close()); err != nil {
		return err
	}
	return os.Rename(temporary.Name(), file)
}

// rememberFor is how long completions are kept.
const rememberFor = 30 * time.Second

// remembered are completions that the cache has.
type remembered struct {
	Made   time.Time `json:"made"`
	What   string    `json:"what"`
	Values []string  `json:"values"`
}

// Remembered returns what find found less than half a minute ago, or finds it.
func (s *Session) Remembered(what string, find func() ([]string, error)) ([]string, error) {
	file := s.cacheFile("completion")
	var kept remembered
	text, err := os.ReadFile(file)
	if err == nil && json.Unmarshal(text, &kept) == nil && kept.What == what+s.TenantName() &&
		time.Since(kept.Made) < rememberFor {
		return kept.Values, nil
	}
	values, err := find()
	if err != nil {
		return nil, err
	}
	return values, s.cache(file, remembered{time.Now(), what + s.TenantName(), values})
}
