package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"
)

// blockTime is how long a block of a page may take.
const blockTime = 5 * time.Minute

// replaced replaces names of a page by those that are here. Each must be there: else the page names something that is replaced
// by nothing.
func replaced(blocks []string, pairs ...string) ([]string, error) {
	whole := strings.Join(blocks, "")
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(whole, pairs[i]) {
			return nil, fmt.Errorf("the page does not name %s any more", pairs[i])
		}
	}
	all := make([]string, len(blocks))
	for i, block := range blocks {
		all[i] = strings.NewReplacer(pairs...).Replace(block)
	}
	return all, nil
}

// A typist is a bash that gets the blocks of a page one after the other, as somebody types them.
type typist struct {
	in    io.WriteCloser
	lines chan string
	end   context.CancelFunc
}

// typist starts a bash with kubectl, in a namespace. It ends where a command fails.
func (g *ground) typist(ctx context.Context, namespace string) (*typist, error) {
	config, err := clientcmd.LoadFromFile(g.plane.Kubeconfig)
	if err != nil {
		return nil, err
	}
	config.Contexts[config.CurrentContext].Namespace = namespace
	path := filepath.Join(g.directory, namespace+".kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	shell := exec.CommandContext(ctx, "bash", "-e")
	shell.Env = append(g.environment(path), "HOME="+g.directory)
	in, err := shell.StdinPipe()
	if err != nil {
		cancel()
		return nil, err
	}
	read, write, err := os.Pipe()
	if err != nil {
		cancel()
		return nil, err
	}
	shell.Stdout, shell.Stderr = write, write
	err = shell.Start()
	write.Close()
	if err != nil {
		cancel()
		read.Close()
		return nil, err
	}
	t := &typist{in: in, lines: make(chan string), end: cancel}
	go func() {
		defer shell.Wait()
		defer read.Close()
		defer close(t.lines)
		for scanner := bufio.NewScanner(read); scanner.Scan(); {
			select {
			case t.lines <- scanner.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	return t, nil
}

// enter types a block, and returns what was said until its end.
func (t *typist) enter(ctx context.Context, block string) (string, error) {
	const end = "the block has ended"
	if _, err := io.WriteString(t.in, block+"\nprintf '\\n%s\\n' '"+end+"'\n"); err != nil {
		return "", fmt.Errorf("the shell has ended: %w", err)
	}
	late := time.NewTimer(blockTime)
	defer late.Stop()
	var said strings.Builder
	for {
		select {
		case line, more := <-t.lines:
			switch {
			case line == end:
				return said.String(), nil
			case !more:
				return said.String(), fmt.Errorf("a command of this block failed:\n%s\nIt said:\n%s", block, said.String())
			}
			said.WriteString(line + "\n")
		case <-late.C:
			return said.String(), fmt.Errorf("this block does not end:\n%s\nIt said:\n%s", block, said.String())
		case <-ctx.Done():
			return said.String(), ctx.Err()
		}
	}
}
