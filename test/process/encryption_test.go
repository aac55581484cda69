package process_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/quorate/quorate/api/quoratepb"
)

var encryptionDrill = flag.Bool("encryption", false, "turn a cluster into an encrypted one, and rotate its keys under kills")

// TestEncryption_memberByMember turns a cluster into an encrypted one while it is written to, as docs/encryption.md says: each
// member is reset and gets its data from the others. Then keys are rotated while members are killed, and the store is rewritten.
// Nothing that was acknowledged is lost, and no byte in any directory shows a planted text.
func TestEncryption_memberByMember(t *testing.T) {
	if !*encryptionDrill {
		t.Skip("it takes half a minute: -encryption, or `make encryption`")
	}
	t.Parallel()
	e := startTrio(t)
	e.client = e.quiet(e.nodes...)
	const planted = 100
	for i := range planted {
		value := strings.Repeat(fmt.Sprintf("PLANTED value %d ", i), 100)
		if _, err := e.client.Put(t.Context(), fmt.Sprintf("PLANTED/%d", i), value); err != nil {
			t.Fatal(err)
		}
	}
	if e.planted() == 0 {
		t.Fatal("a plain cluster shows nothing")
	}
	stop := e.load(2)
	for i, n := range e.nodes {
		n.flags = []string{"--encryption-key-file=" + e.keyFile(n, byte('a'+i))}
		e.loseDisk(n, func() { e.launch(n, "existing") })
	}
	rng := rand.New(rand.NewPCG(1, 1))
	for range 6 {
		e.killWhileRotating(e.nodes[rng.IntN(3)], time.Duration(rng.IntN(400))*time.Millisecond)
	}
	acked := stop()
	for _, n := range e.nodes {
		e.checkKeys(n, acked)
		e.checkKeysRotated(n)
	}
	got, err := e.client.Get(t.Context(), "PLANTED/", clientv3.WithPrefix(), clientv3.WithCountOnly())
	if err != nil || got.Count != planted {
		t.Errorf("%d of %d planted keys are left, %v", got.Count, planted, err)
	}
	if seen := e.planted(); seen > 0 {
		t.Errorf("planted texts were seen %d times", seen)
	}
}

// keyFile writes a key file of one letter's bytes for a member.
func (e *elastic) keyFile(n *node, letter byte) string {
	e.t.Helper()
	name := n.dir + ".keys"
	key := bytes.Repeat([]byte{letter}, 32)
	key[0] = 0xff
	if err := os.WriteFile(name, []byte(base64.StdEncoding.EncodeToString(key)), 0o400); err != nil {
		e.t.Fatal(err)
	}
	return name
}

// planted counts the planted texts in the directories of all members.
func (e *elastic) planted() (count int) {
	for _, n := range e.nodes {
		_ = filepath.WalkDir(n.dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				content, _ := os.ReadFile(path) // files come and go
				count += bytes.Count(content, []byte("PLANTED"))
			}
			return nil
		})
	}
	return count
}

// killWhileRotating kills a member some time after it was asked for new keys, and starts it again.
func (e *elastic) killWhileRotating(n *node, after time.Duration) {
	e.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	rotate := exec.CommandContext(ctx, e.binary, "key", "rotate", "--endpoints="+n.client)
	if err := rotate.Start(); err != nil {
		e.t.Fatal(err)
	}
	<-time.After(after) // the command needs some of it to start
	n.kill()
	_ = rotate.Wait() // it may have failed
	e.launch(n, "existing")
	e.waitReady(n)
}

// checkKeysRotated rotates the keys of a member, has its store rewritten, and checks that new files have the new key.
func (e *elastic) checkKeysRotated(n *node) {
	e.t.Helper()
	out, err := exec.Command(e.binary, "key", "rotate", "--endpoints="+n.client).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "its keys are wrapped by file, key ") {
		e.t.Fatalf("%v\n%s", err, out)
	}
	client := e.quiet(n)
	defer client.Close()
	if _, err := client.Defragment(e.t.Context(), n.client); err != nil {
		e.t.Fatal(err)
	}
	status, err := quoratepb.NewEncryptionClient(client.ActiveConnection()).Status(e.t.Context(), &quoratepb.EncryptionStatusRequest{})
	if err != nil {
		e.t.Fatal(err)
	}
	keys := status.GetKeys()
	if last := keys[len(keys)-1]; !last.GetActive() || last.GetFiles() == 0 || status.GetPlainBytes() > 0 {
		e.t.Errorf("%s: %v", n.name, status)
	}
}
