package audit

import (
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// Head says that a member's chain had a record with a sum, at a time by its clock.
type Head struct {
	Member, Chain, Sequence uint64
	At                      time.Time
	Sum                     Sum
	File                    string // its name at the member
}

// headDocument is the JSON form of a head; numbers of 64 bits are texts in hexadecimal, but for the sequence.
type headDocument struct {
	Member   string    `json:"member"`
	Chain    string    `json:"chain"`
	Sequence uint64    `json:"seq"`
	At       time.Time `json:"time"`
	Sum      string    `json:"sum"`
	File     string    `json:"file,omitempty"`
}

// WriteHeads writes heads, one a line, for ReadHeads.
func WriteHeads(w io.Writer, heads []Head) error {
	encoder := json.NewEncoder(w)
	for i := range heads {
		h := &heads[i]
		d := headDocument{hexadecimal(h.Member), hexadecimal(h.Chain), h.Sequence, h.At.UTC(), h.Sum.String(), h.File}
		if err := encoder.Encode(&d); err != nil {
			return err
		}
	}
	return nil
}

// maxHeads bounds what ReadHeads reads.
const maxHeads = 1 << 16

// ReadHeads reads what WriteHeads wrote.
func ReadHeads(r io.Reader) (heads []Head, err error) {
	decoder := json.NewDecoder(r)
	for decoder.More() {
		var d headDocument
		if err := decoder.Decode(&d); err != nil {
			return nil, fmt.Errorf("head %d is not readable: %w", len(heads)+1, err)
		}
		sum, ok := ParseSum(d.Sum)
		member, known := number64(d.Member)
		chain, named := number64(d.Chain)
		if !ok || !known || !named || len(heads) == maxHeads {
			return nil, fmt.Errorf("head %d is none that `quorate audit heads` wrote", len(heads)+1)
		}
		heads = append(heads, Head{member, chain, d.Sequence, d.At, sum, d.File})
	}
	return heads, nil
}
