// Every probe, in the order in which they are listed. tests/security/test_probes.py checks that no file is
// missing here.

#include "probe.h"

namespace osb::probe {

extern const Probe probe_canary, probe_leaked_fds, probe_cwd_escape, probe_chroot_escape, probe_file_handles,
    probe_fs_ioctls, probe_trusted_xattrs;
extern const Probe probe_initial_namespaces, probe_host_processes, probe_host_ipc, probe_ptrace,
    probe_pid1_proc, probe_pidfd_getfd, probe_runtime_binary, probe_tty, probe_line_disciplines,
    probe_core_dump, probe_rlimit_core, probe_kernel_pools, probe_names;
extern const Probe probe_interfaces, probe_host_loopback, probe_abstract_sockets, probe_control_sockets,
    probe_raw_sockets, probe_vsock, probe_socket_families, probe_net_admin, probe_netlink_events,
    probe_socket_ioctls;
extern const Probe probe_mount, probe_mount_api, probe_unmask, probe_masked_paths, probe_pivot_root;
extern const Probe probe_unshare, probe_clone, probe_clone3, probe_setns, probe_namespace_ioctls,
    probe_uid_map, probe_setuid, probe_capabilities, probe_seccomp, probe_other_abi;
extern const Probe probe_mknod, probe_raw_devices, probe_proc_sys, probe_proc_files, probe_sysfs,
    probe_cgroup_write, probe_release_agent, probe_kernel_log;
extern const Probe probe_modules, probe_kexec, probe_reboot, probe_swap, probe_io_ports, probe_clock,
    probe_hostname, probe_acct, probe_quota, probe_priority;
extern const Probe probe_bpf, probe_perf, probe_userfaultfd, probe_io_uring, probe_keyrings,
    probe_kernel_surface;

namespace {

constexpr const Probe* kAll[] = {
    // Files of the host.
    &probe_canary,
    &probe_leaked_fds,
    &probe_cwd_escape,
    &probe_chroot_escape,
    &probe_file_handles,
    &probe_fs_ioctls,
    &probe_trusted_xattrs,
    // Processes and objects of the host.
    &probe_initial_namespaces,
    &probe_host_processes,
    &probe_host_ipc,
    &probe_ptrace,
    &probe_pid1_proc,
    &probe_pidfd_getfd,
    &probe_runtime_binary,
    &probe_tty,
    &probe_line_disciplines,
    &probe_core_dump,
    &probe_rlimit_core,
    &probe_kernel_pools,
    &probe_names,
    // Network and sockets.
    &probe_interfaces,
    &probe_host_loopback,
    &probe_abstract_sockets,
    &probe_control_sockets,
    &probe_raw_sockets,
    &probe_vsock,
    &probe_socket_families,
    &probe_net_admin,
    &probe_netlink_events,
    &probe_socket_ioctls,
    // Mounts.
    &probe_mount,
    &probe_mount_api,
    &probe_unmask,
    &probe_masked_paths,
    &probe_pivot_root,
    // Namespaces and identity.
    &probe_unshare,
    &probe_clone,
    &probe_clone3,
    &probe_setns,
    &probe_namespace_ioctls,
    &probe_uid_map,
    &probe_setuid,
    &probe_capabilities,
    &probe_seccomp,
    &probe_other_abi,
    // Devices and kernel files.
    &probe_mknod,
    &probe_raw_devices,
    &probe_proc_sys,
    &probe_proc_files,
    &probe_sysfs,
    &probe_cgroup_write,
    &probe_release_agent,
    &probe_kernel_log,
    // Calls that change the machine.
    &probe_modules,
    &probe_kexec,
    &probe_reboot,
    &probe_swap,
    &probe_io_ports,
    &probe_clock,
    &probe_hostname,
    &probe_acct,
    &probe_quota,
    &probe_priority,
    // Kernel surface.
    &probe_bpf,
    &probe_perf,
    &probe_userfaultfd,
    &probe_io_uring,
    &probe_keyrings,
    &probe_kernel_surface,
};

}  // namespace

std::span<const Probe* const> all_probes() { return kAll; }

}  // namespace osb::probe
