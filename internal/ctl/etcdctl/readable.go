package etcdctl

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"unicode/utf8"
)

// withoutReadable asks for JSON where a line, or else the environment, asks for the readable format.
func withoutReadable(args []string, variable string) (plain []string, asked bool) {
	asked = variable == readable
	plain = slices.Clone(args)
	for i := range plain {
		if plain[i] == "--" {
			break
		}
		name, value, joined := strings.Cut(plain[i], "=")
		switch {
		case name != "-w" && name != "--write-out":
		case joined:
			if asked = value == readable; asked {
				plain[i] = name + "=json"
			}
		case i+1 < len(plain):
			if asked = plain[i+1] == readable; asked {
				plain[i+1] = "json"
			}
		}
	}
	return plain, asked
}

// runReadable runs this program again, with JSON as output, and rewrites that. A process of its own, because etcdctl's code
// ends the process after an error, at which a rewriter within it would lose the end of the output.
func runReadable(args []string) int {
	self, err := os.Executable()
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		return 1
	}
	child := exec.Command(self)
	child.Args = append([]string{"quorate", "etcdctl"}, args...) // whatever the file is called
	child.Env = append(os.Environ(), theirPrefix+"WRITE_OUT=json")
	child.Stdin, child.Stderr = os.Stdin, os.Stderr
	output, err := child.StdoutPipe()
	if err == nil {
		err = child.Start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		return 1
	}
	failed := rewrite(os.Stdout, output)
	if failed != nil {
		_ = output.Close() // ends a watch whose reader is gone
	}
	err = child.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return max(exit.ExitCode(), 1)
	}
	if err := errors.Join(failed, err); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		return 1
	}
	return 0
}

// rewrite copies lines, and makes those that are JSON readable.
func rewrite(to io.Writer, from io.Reader) error {
	lines := bufio.NewReader(from)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			if _, err := to.Write(readableLine(line)); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// readableLine returns a line of JSON with keys and values as text, and any other line as it is.
func readableLine(line []byte) []byte {
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.UseNumber()
	value, err := parse(decoder)
	if err != nil || len(bytes.TrimSpace(line[decoder.InputOffset():])) > 0 {
		return line
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(value) != nil {
		return line
	}
	return out.Bytes()
}

// object is a JSON object whose fields keep their order.
type object []field

type field struct {
	name  string
	value any
}

// MarshalJSON implements json.Marshaler.
func (o object) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	out.WriteByte('{')
	for i, f := range o {
		if i > 0 {
			out.WriteByte(',')
		}
		if err := encoder.Encode(f.name); err != nil {
			return nil, err
		}
		out.WriteByte(':')
		if err := encoder.Encode(f.value); err != nil {
			return nil, err
		}
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// parse reads the next value, with keys and values as text.
func parse(in *json.Decoder) (any, error) {
	token, err := in.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		return parseObject(in)
	case json.Delim('['):
		list := []any{}
		for in.More() {
			item, err := parse(in)
			if err != nil {
				return nil, err
			}
			list = append(list, item)
		}
		_, err := in.Token()
		return list, err
	}
	return token, nil
}

func parseObject(in *json.Decoder) (any, error) {
	fields := object{}
	for in.More() {
		name, err := in.Token()
		if err != nil {
			return nil, err
		}
		value, err := parse(in)
		if err != nil {
			return nil, err
		}
		fields = append(fields, asText(name.(string), value))
	}
	_, err := in.Token()
	return fields, err
}

// asText is a field with its bytes as text, if it is one that holds bytes.
func asText(name string, value any) field {
	switch value := value.(type) {
	case string:
		if name == "key" || name == "value" || name == "range_end" {
			if text, ok := plainText(value); ok {
				return field{name, text}
			}
			return field{name + "_base64", value}
		}
	case []any:
		if name != "keys" {
			break
		}
		texts := make([]any, len(value))
		for i, item := range value {
			encoded, ok := item.(string)
			if !ok {
				return field{name, value}
			}
			if texts[i], ok = plainText(encoded); !ok {
				return field{name + "_base64", value}
			}
		}
		return field{name, texts}
	}
	return field{name, value}
}

// plainText is what a text in base64 stands for, if that is text.
func plainText(encoded string) (string, bool) {
	plain, err := base64.StdEncoding.DecodeString(encoded)
	return string(plain), err == nil && utf8.Valid(plain)
}
