package config

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
)

// Memory is how much memory a process may have: bytes, or a part of what the machine or the control group has. The zero value
// leaves it to the process.
type Memory struct {
	Bytes   int64
	Percent float64
}

// minMemoryBytes is the least that a member can work in.
const minMemoryBytes = 128 << 20

var errNotMemory = errors.New(`must be a size such as "512MiB" or "4GiB", or a part of what there is such as "50%"`)

// ParseMemory reads a size with or without a unit, or a percentage; empty, or "auto": the zero value. The error does not name
// the flag.
func ParseMemory(text string) (Memory, error) {
	text = strings.TrimSpace(text)
	if text == "" || text == "auto" {
		return Memory{}, nil
	}
	if number, ok := strings.CutSuffix(text, "%"); ok {
		percent, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		switch {
		case err != nil || math.IsNaN(percent):
			return Memory{}, errNotMemory
		case percent <= 0 || percent > 100:
			return Memory{}, errors.New("must be more than 0% and at most 100%")
		}
		return Memory{Percent: percent}, nil
	}
	bytes, err := humanize.ParseBytes(text)
	switch {
	case err != nil:
		return Memory{}, errNotMemory
	case bytes > math.MaxInt64:
		return Memory{}, errors.New("is too large")
	case bytes < minMemoryBytes:
		return Memory{}, fmt.Errorf("must be at least %s", Memory{Bytes: minMemoryBytes})
	}
	return Memory{Bytes: int64(bytes)}, nil
}

// String is the text that ParseMemory reads.
func (m Memory) String() string {
	switch {
	case m.Percent > 0:
		return strconv.FormatFloat(m.Percent, 'f', -1, 64) + "%"
	case m.Bytes == 0:
		return "auto"
	}
	size, unit := m.Bytes, 0
	for size%1024 == 0 && unit < 3 {
		size, unit = size/1024, unit+1
	}
	return strconv.FormatInt(size, 10) + [...]string{"", "KiB", "MiB", "GiB"}[unit]
}
