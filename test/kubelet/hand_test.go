package main

import (
	"os/exec"
	"strings"
	"testing"
)

// The page has the blocks that the scenarios type, bash can read them, and no name of the page is left in them.
func TestHandScript(t *testing.T) {
	g := &ground{docs: "../../docs"}
	loss := &quorumLoss{best: "q-1", other: "q-4", left: []string{"q-2", "q-3", "q-4", "q-5"}}
	for name, script := range map[string]func(*quorumLoss, string) ([]typedBlock, error){
		"by hand": g.handScript, "terminating": g.terminatingScript} {
		t.Run(name, func(t *testing.T) {
			all, err := script(loss, "now")
			if err != nil {
				t.Fatal(err)
			}
			text := ""
			for _, block := range all {
				text += block.text
			}
			readable(t, text)
		})
	}
}

func readable(t *testing.T, script string) {
	t.Helper()
	for _, name := range []string{"kv-x", "cluster kv", "cluster/kv", "example.com", "v1.1.0"} {
		if strings.Contains(script, name) {
			t.Errorf("the script names %s:\n%s", name, script)
		}
	}
	read := exec.Command("bash", "-n")
	read.Stdin = strings.NewReader(script)
	if out, err := read.CombinedOutput(); err != nil {
		t.Errorf("bash cannot read it: %v\n%s\n%s", err, out, script)
	}
}

func TestBlocks_absent(t *testing.T) {
	g := &ground{docs: "../../docs"}
	if _, err := blocksOf(g.docs, handPage, "### No such section"); err == nil {
		t.Error("a section that is not there has blocks")
	}
	if _, err := replaced([]string{"kubectl get pods kv"}, "kv", "q", "image", "quorate"); err == nil {
		t.Error("a name that is not there is replaced")
	}
}
