package node

import (
	"bytes"
	"context"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A log is that of one run, though others wrote to the file before and after it.
func TestOutput(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, []byte("former\none\ntwo\nthree\nlater\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	close(ended)
	o := &output{path: path, from: 7, to: 21, ended: ended}
	for query, want := range map[string]string{
		"": "one\ntwo\nthree\n", "follow=true": "one\ntwo\nthree\n", "tailLines=2": "two\nthree\n", "tailLines=0": "",
		"tailLines=9&stream=All": "one\ntwo\nthree\n",
	} {
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		asked, err := askedLog(values)
		if err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		var got bytes.Buffer
		if err := o.copy(t.Context(), &got, asked); err != nil || got.String() != want {
			t.Errorf("%q gives %q, %v, want %q", query, got.String(), err, want)
		}
	}
	for _, query := range []string{"tailLines=x", "follow=perhaps", "timestamps=true", "stream=Stdout"} {
		values, err := url.ParseQuery(query)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := askedLog(values); err == nil {
			t.Errorf("%s is taken", query)
		}
	}
}

// A client that follows a log gets its last lines, and then all that is written until the run ends.
func TestOutput_follow(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	write := func(text string) {
		if _, err := file.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	write("one\ntwo\n")
	ended := make(chan struct{})
	o := &output{path: path, ended: ended}
	got := make(chan string)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- o.copy(ctx, writes(got), logRequest{follow: true, tail: 1}) }()
	next := func(want string) {
		t.Helper()
		for {
			select {
			case text := <-got:
				if text == "" {
					continue
				}
				if text != want {
					t.Fatalf("it gives %q, want %q", text, want)
				}
				return
			case err := <-done:
				t.Fatalf("it ended before %q: %v", want, err)
			}
		}
	}
	next("two\n")
	write("three\n")
	next("three\n")
	write("four\n")
	o.to = 19
	close(ended)
	next("four\n")
	for {
		select {
		case text := <-got:
			if text != "" {
				t.Fatalf("it gives %q after the end", text)
			}
		case err := <-done:
			if err != nil {
				t.Fatal(err)
			}
			return
		}
	}
}

// writes sends each write to a channel.
type writes chan string

func (w writes) Write(text []byte) (int, error) {
	w <- string(text)
	return len(text), nil
}
