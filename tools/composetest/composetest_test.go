//go:build linux

package main

import (
	"archive/tar"
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// The example of settings, filled in, has all that the compose file demands.
func TestSettings(t *testing.T) {
	t.Parallel()
	example, err := os.ReadFile("../../" + exampleFile)
	require.NoError(t, err)
	file, err := os.ReadFile("../../" + composeFile)
	require.NoError(t, err)
	filled := fill(string(example))
	require.NotContains(t, filled, "put-")
	demanded := regexp.MustCompile(`\$\{(\w+):\?\}`).FindAllStringSubmatch(string(file), -1)
	require.NotEmpty(t, demanded)
	for _, name := range demanded {
		require.Regexp(t, `(?m)^`+name[1]+`=\S{44,}$`, filled)
	}
	require.NotEqual(t, filled, fill(string(example)), "secrets are random")
}

func TestImage(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "file"), []byte("text"), 0o600))
	require.NoError(t, os.Symlink("file", filepath.Join(folder, "link")))
	var written bytes.Buffer
	i := image{
		folders: []string{"tmp"},
		files:   map[string]string{"usr/share": folder, "bin/one": filepath.Join(folder, "link")},
		texts:   map[string]string{"etc/passwd": "root"},
		links:   map[string]string{"bin/sh": "one"},
	}
	require.NoError(t, i.write(&written))
	got := map[string]string{}
	for entries := tar.NewReader(&written); ; {
		header, err := entries.Next()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		text, err := io.ReadAll(entries)
		require.NoError(t, err)
		got[header.Name] = string(header.Typeflag) + header.Linkname + string(text)
	}
	require.Equal(t, map[string]string{
		"tmp": "5", "usr/share": "5", "usr/share/file": "0text", "usr/share/link": "2file", "bin/one": "0text",
		"etc/passwd": "0root", "bin/sh": "2one",
	}, got)
}

func TestTunnel(t *testing.T) {
	t.Parallel()
	far := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "far away")
	}))
	defer far.Close()
	near := httptest.NewServer(http.HandlerFunc(tunnel))
	defer near.Close()
	way, err := url.Parse(near.URL)
	require.NoError(t, err)
	client := far.Client()
	transport := client.Transport.(*http.Transport)
	transport.Proxy = http.ProxyURL(way)
	defer transport.CloseIdleConnections()
	response, err := client.Get(far.URL)
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, "far away", string(text))
}

// A user that is not exported, or has become another one, is missing.
func TestMissing(t *testing.T) {
	t.Parallel()
	platform := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer token" || r.URL.Path != "/v1/users/export" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, `{"id":"1","username":"a"}`+"\n"+`{"id":"2","username":"x"}`+"\n")
	}))
	defer platform.Close()
	w := &creations{url: platform.URL, token: "token", acknowledged: map[string]string{"1": "a"}}
	missing, err := w.missing(t.Context())
	require.NoError(t, err)
	require.Empty(t, missing)
	w.acknowledged["2"], w.acknowledged["3"] = "b", "c"
	missing, err = w.missing(t.Context())
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"b", "c"}, missing)
	w.token = ""
	_, err = w.missing(t.Context())
	require.Error(t, err)
}
