package objectstest_test

import (
	"testing"
	"time"

	"github.com/quorate/quorate/internal/storage/objects"
	"github.com/quorate/quorate/internal/storage/objects/objectstest"
)

func never() time.Time { return time.Time{} }

// Ensure that the place is one like others while it has no faults.
func TestPlace(t *testing.T) {
	objectstest.Run(t, func(*testing.T) objects.Store { return objectstest.NewPlace(1, never) },
		objectstest.Options{Large: 1 << 20})
}
