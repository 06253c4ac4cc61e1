package main

import (
	"os"
	"path/filepath"
	"testing"
)

// The first screen has to be there at once on a slow line, and an administrator's console must not grow into megabytes.
const (
	maxFirst = 60_000 // bytes of script, gzip
	maxAll   = 250_000
)

func TestSizes(t *testing.T) {
	t.Parallel()
	b, err := bundle("..", false)
	if err != nil {
		t.Fatal(err)
	}
	for _, language := range languages {
		first, all := b.sizes(language)
		t.Logf("%s: first screen %d bytes, all %d bytes (gzip)", language, first, all)
		if first > maxFirst || all > maxAll {
			t.Errorf("the limits are %d and %d: import what a screen alone needs in its folder", maxFirst, maxAll)
		}
	}
}

func TestTwoBuildsAreAlike(t *testing.T) {
	t.Parallel()
	one, err := bundle("..", false)
	if err != nil {
		t.Fatal(err)
	}
	two, err := bundle("..", false)
	if err != nil {
		t.Fatal(err)
	}
	for name, body := range one.files {
		if string(two.files[name]) != string(body) {
			t.Errorf("%s differs", name)
		}
	}
}

func TestVendoredFilesAreChecked(t *testing.T) {
	t.Parallel()
	if err := checkVendor("../vendor"); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{sumsFile: "", "preact.mjs": "alert(1)"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if checkVendor(dir) == nil {
		t.Error("a file that is not in the list was taken")
	}
}

func TestOperationsOfTheSDK(t *testing.T) {
	t.Parallel()
	table, err := operations("../../../sdk/typescript/src")
	if err != nil {
		t.Fatal(err)
	}
	for request, id := range map[string]string{
		"POST /v1/users": "create-user", "PATCH /v1/users/{id}": "update-user",
		"POST /v1/batch/users-lock": "lock-users", "PUT /v1/kv/buckets/{bucket}": "put-kv-bucket",
	} {
		if table[request] != id {
			t.Errorf("%s is %q, want %q", request, table[request], id)
		}
	}
	if id, is := table["GET /v1/users"]; is {
		t.Errorf("%s only reads", id)
	}
}
