package service_test

import (
	"debug/elf"
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/idplatform/idplatform/pkg/service"
)

// residentFile is how much of mapped files is in memory, in KiB.
func residentFile(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	found := regexp.MustCompile(`RssFile:\s+(\d+) kB`).FindSubmatch(status)
	require.NotNil(t, found)
	kib, err := strconv.Atoi(string(found[1]))
	require.NoError(t, err)
	return kib
}

// TestForgetStart: pages of the program that are not used leave the memory, and it runs on. It is not parallel, so that
// no other test uses new pages meanwhile.
func TestForgetStart(t *testing.T) {
	program, err := os.Executable()
	require.NoError(t, err)
	file, err := elf.Open(program)
	require.NoError(t, err)
	defer file.Close()
	if file.Type != elf.ET_EXEC {
		t.Skip("the program is linked for any address: nothing of it is dropped")
	}
	before := residentFile(t)
	service.ForgetStart()
	require.Less(t, residentFile(t), before)
}
