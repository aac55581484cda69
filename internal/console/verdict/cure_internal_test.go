package verdict

import (
	"slices"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/console/page"
	"github.com/quorate/quorate/internal/ctl"
)

// Ensure that a cure is shown as a command of the user who looks, and that each command of a cure that asks a member says which.
func TestCureLine(t *testing.T) {
	r := &page.Request{Endpoint: "http://10.0.0.1:2379", User: "o'hara"}
	for cure, want := range map[string]string{
		"quorate compact 79000":         `quorate compact 79000 --endpoints http://10.0.0.1:2379 --user 'o'\''hara'`,
		"quorate doctor --user NAME":    "quorate doctor --user NAME --endpoints http://10.0.0.1:2379",
		"quorate config print":          "quorate config print",
		"openssl x509 -noout -in FILE":  "openssl x509 -noout -in FILE",
		"journalctl --grep 'x y' quiet": "journalctl --grep 'x y' quiet",
	} {
		if got := cureLine(cure, r); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	certified := &page.Request{Endpoint: "https://10.0.0.1:2379", User: "alice", Certified: true}
	if got := cureLine("quorate status", certified); got != "quorate status --endpoints https://10.0.0.1:2379" {
		t.Errorf("of a certificate: %s", got)
	}
	for _, cure := range []string{"status", "member list", "member jobs", "member plan", "member update m", "member reset m", "doctor",
		"compact 7", "endpoint hashkv", "upgrade plan", "top", "lease list", "latency", "get k", "config print"} {
		words := strings.Fields(cure)
		asks := ctl.TakesValue(words, "--endpoints") || words[0] == "endpoint" // which etcdctl's code has
		if asks != slices.Contains(ofClients, words[0]) {
			t.Errorf("quorate %s asks a member: %v", cure, asks)
		}
	}
}
