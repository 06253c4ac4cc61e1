package stream

import "testing"

func BenchmarkDecode(b *testing.B) {
	payload := []byte(eventJSON)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Decode("idp.events.acme.user.created", payload); err != nil {
			b.Fatal(err)
		}
	}
}
