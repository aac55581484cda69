package s3_test

import (
	"os"
	"testing"

	"github.com/minio/minio-go/v7"
)

// The library waits a moment after an attempt also if it is the last one.
func TestMain(m *testing.M) {
	minio.DefaultRetryUnit = 1
	os.Exit(m.Run())
}
