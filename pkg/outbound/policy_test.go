package outbound

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPolicy(t *testing.T) {
	t.Parallel()
	const (
		never   = iota // refused with AllowPrivate too
		private        // allowed only with AllowPrivate
		public
	)
	for want, addresses := range map[int][]string{
		public: {
			"1.1.1.1", "93.184.216.34", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0",
			"126.255.255.255", "128.0.0.0", "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0",
			"192.0.1.0", "192.167.255.255", "192.169.0.0", "198.17.255.255", "198.20.0.0", "223.255.255.255",
			"168.63.129.15", "2606:4700:4700::1111", "2001:200::1", "2001:4860:4860::8888", "2a00::1",
			"::ffff:1.1.1.1", "64:ff9b::1.1.1.1", "2002:0101:0101::1",
		},
		private: {
			"10.0.0.0", "10.255.255.255", "172.16.0.1", "172.31.255.255", "192.168.0.0", "192.168.255.255",
			"127.0.0.1", "127.255.255.255", "100.64.0.0", "100.127.255.255",
			"::1", "fc00::1", "fd12:3456:789a::1", "fdff:ffff::1",
			"::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:7f00:1", "::ffff:100.64.0.1",
			"64:ff9b::10.0.0.1", "64:ff9b::127.0.0.1", "2002:7f00:0001::", "2002:0a00:0001::1", "2002:c0a8:0101:1::1",
		},
		never: {
			"0.0.0.0", "0.0.0.1", "0.255.255.255", "169.254.0.1", "169.254.169.254",
			"192.0.0.192", "192.0.2.1", "198.51.100.1", "203.0.113.1",
			"198.18.0.1", "198.19.255.255", "192.88.99.1", "224.0.0.1", "239.255.255.255", "240.0.0.1",
			"255.255.255.255",
			"168.63.129.16", "100.100.100.200", "fd00:ec2::254", "fd20:ce::254",
			"::", "fe80::1", "fe80::1%eth0", "febf::1", "fec0::1", "ff02::1",
			"2001:db8::1", "3fff::1", "2001::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2",
			"100::1", "5f00::1", "4000::1", "64:ff9b:1::10.0.0.1",
			"::10.0.0.1", "::127.0.0.1", "::ffff:0:127.0.0.1", "::1.1.1.1",
			"::ffff:169.254.169.254", "::ffff:0.0.0.0",
			"64:ff9b::169.254.169.254", "64:ff9b::a83f:8110", "2002:a9fe:a9fe::1", "2002:e000:1::1",
		},
	} {
		for _, address := range addresses {
			addr := netip.MustParseAddr(address)
			require.Equal(t, want < public, policy{}.refuses(addr) != "", address)
			require.Equal(t, want < private, policy{allowPrivate: true}.refuses(addr) != "", address)
		}
	}
}

func TestControl(t *testing.T) {
	t.Parallel()
	require.NoError(t, policy{}.control("tcp4", "1.1.1.1:443", nil))
	require.NoError(t, policy{}.control("tcp6", "[2606:4700:4700::1111]:443", nil))
	for _, at := range [][2]string{
		{"udp4", "1.1.1.1:53"}, {"unix", "/var/run/docker.sock"}, {"tcp4", "1.1.1.1"}, {"tcp4", "localhost:80"},
		{"tcp6", "[fe80::1%eth0]:80"}, {"tcp6", "[::ffff:127.0.0.1]:80"},
	} {
		require.ErrorIs(t, policy{allowPrivate: false}.control(at[0], at[1], nil), ErrRefused, at)
	}
}

// An address is judged by its bytes alone, whatever form it has.
func FuzzPolicy(f *testing.F) {
	for _, seed := range []string{
		"127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "fe80::1%x", "1.1.1.1",
	} {
		f.Add(netip.MustParseAddr(seed).AsSlice())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		addr, ok := netip.AddrFromSlice(b)
		if !ok {
			return
		}
		refused := policy{}.refuses(addr) != ""
		require.Equal(t, refused, policy{}.refuses(netip.AddrFrom16(addr.As16())) != "", addr)
		plain := addr.Unmap()
		if plain.IsLoopback() || plain.IsPrivate() || plain.IsMulticast() || plain.IsUnspecified() ||
			plain.IsLinkLocalUnicast() {
			require.True(t, refused, addr)
		}
		if (policy{allowPrivate: true}).refuses(addr) != "" {
			require.True(t, refused, "AllowPrivate must not refuse more: %s", addr)
		}
	})
}
