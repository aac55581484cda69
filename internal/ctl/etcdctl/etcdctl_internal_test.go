package etcdctl

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/spf13/cobra"
)

func TestAccepts(t *testing.T) {
	for line, want := range map[string]bool{
		"get a --order=DESCEND":      true,
		"get a -w json":              true,
		"get a --serializable":       false, // ours has it
		"lease timetolive 12 --keys": true,
		"lease show 12":              false,
		"lease":                      true,
		"member add m4 --peer-urls=http://127.0.0.1:1": true,
		"member drain m4":           false,
		"--endpoints a:1 user list": true,
		"--name m1":                 false,
		"nothing":                   false,
		"":                          false,
	} {
		if got := Accepts(strings.Fields(line)); got != want {
			t.Errorf("%q: got %v, want %v", line, got, want)
		}
	}
}

func TestLeads(t *testing.T) {
	for line, want := range map[string]bool{
		"--endpoints=a:1 get k":   true,
		"--endpoints a:1 get k":   true,
		"-w json get k":           true,
		"-wjson get k":            true,
		"get k --endpoints=a:1":   false, // the command comes first
		"--endpoints=a:1":         false, // no command
		"--name get":              false, // a flag of the server
		"--data-dir d --name get": false,
		"--":                      false,
		"-":                       false,
		"":                        false,
	} {
		if got := Leads(strings.Fields(line)); got != want {
			t.Errorf("%q: got %v, want %v", line, got, want)
		}
	}
}

func TestComplete(t *testing.T) {
	offered, directive := Complete([]string{"user"}, "gr")
	if want := []string{"grant-role\tGrants a role to a user"}; !slices.Equal(offered, want) || directive != cobra.ShellCompDirectiveNoFileComp {
		t.Errorf("after user gr: got %q, %v, want %q", offered, directive, want)
	}
	offered, _ = Complete([]string{"get", "k", "--write-out"}, "")
	if !slices.Contains(offered, readable) || !slices.Contains(offered, "json") {
		t.Errorf("after --write-out: got %q", offered)
	}
}

func TestWithoutReadable(t *testing.T) {
	for _, row := range []struct {
		line, variable, want string
		asked                bool
	}{
		{"get a -w readable", "", "get a -w json", true},
		{"get a --write-out=readable --prefix", "", "get a --write-out=json --prefix", true},
		{"get a -w=readable", "", "get a -w=json", true},
		{"get readable", "", "get readable", false},
		{"get a -w json", "readable", "get a -w json", false}, // a flag beats the environment
		{"get a", "readable", "get a", true},
		{"put a -- -w readable", "", "put a -- -w readable", false},
		{"get a -w", "", "get a -w", false},
	} {
		got, asked := withoutReadable(strings.Fields(row.line), row.variable)
		if strings.Join(got, " ") != row.want || asked != row.asked {
			t.Errorf("%q, %q: got %q, %v; want %q, %v", row.line, row.variable, got, asked, row.want, row.asked)
		}
	}
}

func TestReadableLine(t *testing.T) {
	for _, row := range []struct{ name, line, want string }{
		{"keys and values", `{"kvs":[{"key":"YQ==","value":"PGI+","version":1}],"count":1}`, `{"kvs":[{"key":"a","value":"<b>","version":1}],"count":1}`},
		{"no text", `{"key":"/w==","value":"YQ=="}`, `{"key_base64":"/w==","value":"a"}`},
		{"a permission", `{"perm":[{"permType":1,"key":"YQ==","range_end":"AA=="}]}`, `{"perm":[{"permType":1,"key":"a","range_end":"\u0000"}]}`},
		{"the keys of a lease", `{"id":9151734699010623715,"keys":["YQ==","Yg=="]}`, `{"id":9151734699010623715,"keys":["a","b"]}`},
		{"one of them no text", `{"keys":["YQ==","/w=="]}`, `{"keys_base64":["YQ==","/w=="]}`},
		{"fields keep their order", `{"z":1,"a":{"b":null,"a":[]},"m":true}`, `{"z":1,"a":{"b":null,"a":[]},"m":true}`},
		{"a name that looks like base64", `{"users":["Ym9i"],"name":"Ym9i"}`, `{"users":["Ym9i"],"name":"Ym9i"}`},
		{"a number under the name of a key", `{"key":7,"keys":[7]}`, `{"key":7,"keys":[7]}`},
		{"two values", `{} {}`, `{} {}`},
		{"half a value", `{"key":"YQ=="`, `{"key":"YQ=="`},
		{"words", `progress notify: 7`, `progress notify: 7`},
	} {
		if got := string(readableLine([]byte(row.line + "\n"))); got != row.want+"\n" {
			t.Errorf("%s: got %swant %s", row.name, got, row.want)
		}
	}
}

// Ensure that lines are rewritten as they come, whatever the pieces in which they are read.
func TestRewrite(t *testing.T) {
	var out bytes.Buffer
	in := "{\"key\":\"YQ==\"}\nwords\n{\"key\":\"Yg==\"}"
	if err := rewrite(&out, iotest.OneByteReader(strings.NewReader(in))); err != nil {
		t.Fatal(err)
	}
	if want := "{\"key\":\"a\"}\nwords\n{\"key\":\"b\"}\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

// Whatever a line holds, it comes out as a line, and JSON stays JSON.
func FuzzReadableLine(f *testing.F) {
	f.Add([]byte(`{"kvs":[{"key":"YQ==","value":"/w=="}],"keys":["YQ=="]}`))
	f.Add([]byte(`[{"key":{"key":[1.5e3,null,"\ud800"]}}]`))
	f.Fuzz(func(t *testing.T, line []byte) {
		out := readableLine(line)
		if json.Valid(line) && !json.Valid(out) {
			t.Errorf("%q became %q", line, out)
		}
	})
}
