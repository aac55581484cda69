package pages_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/quorate/quorate/internal/console/page"
	"github.com/quorate/quorate/internal/console/pages"
	"github.com/quorate/quorate/internal/ctl"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/ctl/ctltest"
)

// queries are looks at pages whose command lines differ.
var queries = []string{"", "of=alice", "by=cpu&of=clients&window=5m&rows=50", "do=delete-user&user=alice", "do=set-password&user=alice",
	"do=delete-role&role=pods", "do=revoke-role&user=alice&role=pods", "do=revoke-permission&role=pods&key=L2E&end=L2I",
	"do=stop", "do=start&place=file:///mnt/b&base=6h&seal=1s&verify=24h",
	"name=batch&user=ann&writes=200&write-bytes=4MiB", "name=all&keys=all&quota-bytes=1GiB&quota-keys=9",
	"by=ann&prefix=/a/&operation=put"}

// etcdctls are the commands that etcdctl has alone.
var etcdctls = []string{"alarm", "auth", "user", "role"}

// Ensure that every command line that a page shows is one that the program has, with flags that it knows.
func TestAll_commands(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range pages.All() {
		for _, s := range p.Sections {
			for _, query := range queries {
				values, err := url.ParseQuery(query)
				if err != nil || s.Command == nil {
					continue
				}
				line := s.Command(&page.Request{Query: values, Now: time.Now(), Endpoint: "http://127.0.0.1:2379", Member: "m1",
					User: "alice"})
				if line == "" || seen[line] {
					continue
				}
				seen[line] = true
				if !strings.Contains(line, "--user alice") || !strings.Contains(line, "--endpoints http://127.0.0.1:2379") {
					t.Errorf("%s, %s: %s: not as the user who looks", p.Path, s.ID, line)
				}
				words := strings.Fields(line)[1:]
				if slices.Contains(etcdctls, words[0]) {
					if !ctl.Exists(words) { // it is not run: it may end the process
						t.Errorf("%s, %s: there is no command %s", p.Path, s.ID, line)
					}
					continue
				}
				got := ctltest.Run(t, t.Context(), command.Streams{}, "", append(words, "--help")...)
				if got.Status != command.StatusOK || !strings.Contains(got.Out, "Usage:") {
					t.Errorf("%s, %s: %s: status %d, %s%s", p.Path, s.ID, line, got.Status, got.Out, got.Err)
				}
			}
		}
	}
	if len(seen) < 10 {
		t.Errorf("only %d command lines", len(seen))
	}
}
