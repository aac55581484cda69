package keys

import (
	"bytes"
	"encoding/json"
	"math/rand"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"
)

// Ensure that a name leads back to its key, also by way of a link and of the field of a form, and shows nothing that is not printed.
func TestNameOf(t *testing.T) {
	const seed = 5
	rng := rand.New(rand.NewSource(seed))
	keys := [][]byte{{}, []byte(`"`), []byte(`""`), []byte(" a"), []byte("a "), []byte("a b"), []byte(`\x00`), []byte("a\u202eb"), []byte("\ufffd"),
		[]byte("ü"), {0xff}, []byte("a\r\nb")}
	for range 5000 {
		key := make([]byte, rng.Intn(6))
		for i := range key {
			key[i] = []byte("\x00\xff\xc3\xbc\"\\ /a\n%&=+<")[rng.Intn(15)]
		}
		keys = append(keys, key)
	}
	for _, key := range keys {
		name := nameOf(key)
		if got, err := keyOf(name); err != nil || !bytes.Equal(got, key) {
			t.Fatalf("%q has the name %s, which leads to %q: %v", key, name, got, err)
		}
		if strings.IndexFunc(name, hidden) >= 0 || strings.Contains(name, "\t") || !utf8.ValidString(name) {
			t.Fatalf("%q has the name %q", key, name)
		}
		link, err := url.Parse(toKey("/keys/key", key))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := keyOf(link.Query().Get("key")); err != nil || !bytes.Equal(got, key) {
			t.Fatalf("%q: the link %s leads to %q: %v", key, link, got, err)
		}
	}
	if link := toKey("/keys/key", bytes.Repeat([]byte("k"), 7000)); link != "" {
		t.Errorf("a key of 7000 bytes has a link of %d", len(link))
	}
	if s := short(bytes.Repeat([]byte("ü"), 1<<20)); len(s) > 400 || !utf8.ValidString(s) {
		t.Errorf("a long key is shown as %q", s)
	}
}

// Ensure that JSON is not indented if that would make much of little.
func TestIndent(t *testing.T) {
	for name, value := range map[string]string{
		"many levels":   strings.Repeat("[", 9000) + strings.Repeat("]", 9000),
		"many elements": strings.Repeat("[", 60) + "1" + strings.Repeat(",1", 30_000) + strings.Repeat("]", 60),
	} {
		if !json.Valid([]byte(value)) {
			t.Fatalf("%s: that is no JSON", name)
		}
		if out, ok := indent([]byte(value)); ok {
			t.Errorf("%s: %d bytes become %d", name, len(value), len(out))
		}
		if v := viewOf([]byte(value)); v.Kind != kindJSON || v.Indented {
			t.Errorf("%s: it is %s, indented %v", name, v.Kind, v.Indented)
		}
	}
	if out, ok := indent([]byte(`{"a":"[{\"","b":[]}`)); !ok || string(out) != "{\n  \"a\": \"[{\\\"\",\n  \"b\": []\n}" {
		t.Errorf("got %v, %s", ok, out)
	}
}

// Ensure that a damaged object of Kubernetes is shown as far as it can be read.
func TestFactsOf(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	for range 2000 {
		value := append([]byte(nil), kubeMagic...)
		for range rng.Intn(200) {
			value = append(value, byte(rng.Intn(32)))
		}
		if facts := factsOf(value); len(facts) > mostFacts {
			t.Fatalf("%d facts", len(facts))
		}
	}
	if facts := factsOf(append([]byte("k8s\x00"), bytes.Repeat([]byte{0x0a, 0x04, 0x12, 0x02, 'a', 0x01}, 1<<16)...)); len(facts) > mostFacts {
		t.Errorf("%d facts", len(facts))
	}
}

// Ensure that the way to a deep key has bounds, and leads to all that it names.
func TestCrumbsOf(t *testing.T) {
	list, skipped := crumbsOf([]byte("/a/b/"))
	if len(list) != 4 || skipped || list[1].Name != "/" || list[2].Name != "a/" || list[3].Href != "/keys?prefix=%2Fa%2Fb%2F" {
		t.Errorf("got %v, %v", list, skipped)
	}
	list, skipped = crumbsOf([]byte(strings.Repeat("x/", 1000) + "rest"))
	if len(list) != mostCrumbs+2 || !skipped || list[1].Name != "x/" || list[len(list)-1].Name != "rest…" {
		t.Errorf("got %v, %v", list, skipped)
	}
	list, skipped = crumbsOf([]byte("///"))
	if len(list) != 4 || skipped || list[3].Name != "/" {
		t.Errorf("got %v, %v", list, skipped)
	}
	if list, _ = crumbsOf(nil); len(list) != 1 {
		t.Errorf("got %v", list)
	}
}
