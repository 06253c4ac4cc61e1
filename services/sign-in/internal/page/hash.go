package page

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
)

// PostHash is the hash of the script of Post, for the page's policy.
var PostHash = func() string {
	text := read("pages/post.html")
	_, script, _ := bytes.Cut(text, []byte("<script>"))
	script, _, _ = bytes.Cut(script, []byte("</script>"))
	sum := sha256.Sum256(script)
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}()
