package answers_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
)

// request is one row of the table.
type request struct {
	name     string
	method   string // as in KV/Range
	messages []string
	answers  int // of a stream: how many messages are read before it is closed
}

// readTable reads requests.txt: fields separated by " | ", of which the last ones are messages. Of the method of a stream a
// number says how many answers are awaited: Watch/Watch 2.
func readTable(t *testing.T, path string) []request {
	t.Helper()
	var rows []request
	for i, line := range lines(t, path) {
		fields := strings.Split(line, " | ")
		if len(fields) < 3 {
			t.Fatalf("%s: row %d lacks a name, a method or a message: %s", path, i+1, line)
		}
		row := request{name: fields[0], messages: fields[2:]}
		if _, err := fmt.Sscanf(fields[1], "%s %d", &row.method, &row.answers); err != nil {
			row.method = fields[1]
		}
		rows = append(rows, row)
	}
	return rows
}

// lines returns the lines of a file that are neither empty nor comments.
func lines(t *testing.T, path string) []string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(string(content)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			out = append(out, line)
		}
	}
	return out
}

// readPairs reads a file of lines NAME | TEXT.
func readPairs(t *testing.T, path string) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, line := range lines(t, path) {
		name, text, _ := strings.Cut(line, " | ")
		out[name] = text
	}
	return out
}

// expand turns a message of the table into protobuf's JSON. Within it
//
//	"=k"                   is the bytes of k
//	"#1024"                is that many zero bytes
//	"$self"                is the id of the member that is asked; "$peer" its peer URL
//	{"$times": [n, x]}     within a list is n times x, with %d replaced by 0, 1, …
//	{"$nest": n}           is a put within n transactions
func expand(message string, names map[string]string) (string, error) {
	decoder := json.NewDecoder(strings.NewReader(message))
	decoder.UseNumber()
	var parsed any
	if err := decoder.Decode(&parsed); err != nil {
		return "", fmt.Errorf("%s: %w", message, err)
	}
	out, err := json.Marshal(expanded(parsed, names))
	return string(out), err
}

func expanded(v any, names map[string]string) any {
	switch v := v.(type) {
	case string:
		return expandedText(v, names)
	case []any:
		var out []any
		for _, item := range v {
			out = append(out, repeated(item, names)...)
		}
		return out
	case map[string]any:
		if depth, ok := v["$nest"].(json.Number); ok {
			n, _ := depth.Int64()
			return nested(n)
		}
		for key := range v {
			v[key] = expanded(v[key], names)
		}
	}
	return v
}

func expandedText(text string, names map[string]string) string {
	if plain, ok := strings.CutPrefix(text, "="); ok {
		return base64.StdEncoding.EncodeToString([]byte(plain))
	}
	var size int
	if _, err := fmt.Sscanf(text, "#%d", &size); err == nil {
		return base64.StdEncoding.EncodeToString(make([]byte, size))
	}
	if name, ok := names[text]; ok {
		return name
	}
	return text
}

// repeated is what an item of a list stands for.
func repeated(item any, names map[string]string) []any {
	object, _ := item.(map[string]any)
	times, ok := object["$times"].([]any)
	if !ok {
		return []any{expanded(item, names)}
	}
	text, _ := json.Marshal(times[1])
	n, _ := times[0].(json.Number).Int64()
	var out []any
	for i := range n {
		var one any
		_ = json.Unmarshal([]byte(strings.ReplaceAll(string(text), "%d", fmt.Sprint(i))), &one)
		out = append(out, expanded(one, names))
	}
	return out
}

// nested is a put within that many transactions.
func nested(depth int64) any {
	put := map[string]any{"requestPut": map[string]any{"key": "ZGVlcA=="}}
	txn := map[string]any{"success": []any{put}}
	for range depth - 1 {
		txn = map[string]any{"success": []any{map[string]any{"requestTxn": txn}}}
	}
	return txn
}
