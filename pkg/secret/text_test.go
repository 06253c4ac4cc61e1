package secret_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/secret"
)

func TestTextIsNeverPrinted(t *testing.T) {
	t.Parallel()
	text := secret.NewText("hunter2")
	body, err := json.Marshal(map[string]any{"a": text, "b": &text, "c": []secret.Text{text}, "none": secret.Text{}})
	require.NoError(t, err)
	require.JSONEq(t, `{"a":"******","b":"******","c":["******"],"none":""}`, string(body))
	type record struct{ Secret secret.Text }
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		require.NotContains(t, fmt.Sprintf(verb, text), "hunter2")
		require.NotContains(t, fmt.Sprintf(verb, record{text}), "hunter2")
		require.NotContains(t, fmt.Sprintf(verb, record{text}), fmt.Sprintf("%x", "hunter2"))
	}
	require.NotContains(t, text.LogValue().String(), "hunter2")
}

func TestTextReadsWhatClientsSend(t *testing.T) {
	t.Parallel()
	for sent, want := range map[string]struct {
		set   bool
		given string
	}{
		`"hunter2"`: {true, "hunter2"}, `"******"`: {true, ""}, `"*****"`: {true, "*****"},
		`""`: {false, ""}, `null`: {false, ""},
	} {
		text := secret.NewText("old")
		require.NoError(t, json.Unmarshal([]byte(sent), &text), sent)
		given, ok := text.Given()
		require.Equal(t, want.set, text.IsSet(), sent)
		require.Equal(t, want.given, given, sent)
		require.Equal(t, want.given != "", ok, sent)
	}
	var text secret.Text
	require.Error(t, json.Unmarshal([]byte(`7`), &text))
}
