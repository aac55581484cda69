package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/consensus"
	"github.com/quorate/quorate/internal/ctl/command"
	"github.com/quorate/quorate/internal/member/recovery"
)

// Ensure that the lines to type next have the flags with which this one worked.
func TestAddressing_next(t *testing.T) {
	var out bytes.Buffer
	a := addressing{dataDir: "d", walDir: "w", peerFiles: peerFiles{"c.crt", "c.key", "my " +
		"ca"}, Streams: command.Streams{Out: &out},
		member: &recovery.Survivor{Config: consensus.Config{}}}
	const tls = " --peer-cert-file c.crt --peer-key-file c.key --peer-trusted-ca-file 'my ca'"
	if got, want := a.line(a.dataDir, a.walDir, "MEMBER=URL"),
		"quorate set-address --data-dir d --wal-dir w"+tls+" MEMBER=URL"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	words := []string{"m1=http://10.0.0.1:2380"}
	a.next(words)
	for _, want := range []string{
		"  2. quorate set-address --data-dir ITS-DIR --wal-dir ITS-WAL-DIR" + tls + " m1=http://10.0.0.1:2380\n", "drop that " +
			"if it has none",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in:\n%s", want, out.String())
		}
	}
	out.Reset()
	a.walDir, a.peerFiles = "", peerFiles{}
	a.next(words)
	if want := "  2. quorate set-address --data-dir ITS-DIR m1=http"; !strings.Contains(out.String(), want) {
		t.Errorf("no %q in:\n%s", want, out.String())
	}
	if got := given("--a", "", "--b", "2"); strings.Join(got, " ") != "--b 2" {
		t.Errorf("flags without a value: %q", got)
	}
}
