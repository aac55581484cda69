package process_test

import (
	"context"
	"strings"
	"testing"

	"github.com/quorate/quorate/internal/base/testnet"
)

// TestAddress_ownMistake starts a member again with its client port, and with a port at which no process listens, as its peer
// URL. It finds out by itself, tells no other, and says what is wrong; the others keep it where it is.
func TestAddress_ownMistake(t *testing.T) {
	t.Parallel()
	e := startTrio(t)
	n := e.others(e.leader())[0]
	for _, row := range []struct{ url, want string }{
		{n.client, n.client + " is a wrong URL: that is a client port of member "},
		{"http://" + testnet.Address(t), "nobody answers at "},
	} {
		n.kill()
		begun := len(tail(n.log, 1<<20))
		n.flags = []string{"--initial-advertise-peer-urls=" + row.url}
		e.launch(n, "existing")
		until(t, n.name+" names the mistake", func(context.Context) bool {
			said := tail(n.log, 1<<20)[begun:]
			return strings.Contains(said, "the cluster is not told of --initial-advertise-peer-urls") && strings.Contains(said, row.want)
		})
		if said := tail(n.log, 1<<20)[begun:]; !strings.Contains(said, "--initial-advertise-peer-urls counts, unlike --initial-cluster") ||
			strings.Contains(said, "told the cluster where") {
			t.Errorf("it does not say which flag counts, or tells the cluster a wrong URL:\n%s", said)
		}
		e.waitReady(n)
	}
	e.checkVoters()
}
