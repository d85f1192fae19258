"""Every feature gate that kube-scheduler 1.36 knows: its stage, its default, and whether it can still be changed.

Those that touch scheduling are in `gates`; the others are accepted, as on kube-scheduler's command line, and change
nothing here. Source: G058 to G104; the gates kube-scheduler 1.36.3 reports in kubernetes_feature_enabled.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class KnownGate:
    """One gate.

    Attributes:
        stage: `ALPHA`, `BETA`, `DEPRECATED`; empty for general availability.
        default: whether it is on by default.
        locked: whether it can have no other value.
    """

    stage: str
    default: bool
    locked: bool


_ALPHA_OFF: Final = """
APIServingWithRoutine AllAlpha AllowUnsafeMalformedObjectDeletion CBORServingAndStorage CPUManagerPolicyAlphaOptions
CRIListStreaming CSIVolumeHealth ClientsAllowCBOR ClientsPreferCBOR
CloudControllerManagerWatchBasedRoutesReconciliation CloudControllerManagerWebhook ContainerStopSignals
CrossNamespaceVolumeDataSource DRAListTypeAttributes DRANodeAllocatableResources DRAResourcePoolStatus
DRAWorkloadResourceClaims EventedPLEG GangScheduling GenericWorkload HPAScaleToZero ImageVolumeWithDigest
InPlacePodVerticalScalingExclusiveCPUs InPlacePodVerticalScalingExclusiveMemory KubeletInUserNamespace
LoggingAlphaOptions ManifestBasedAdmissionControlConfig MemoryQoS MutablePVNodeAffinity NativeHistograms
PersistentVolumeClaimUnusedSinceTime PodAndContainerStatsFromCRI PodLevelResourceManagers PodLogsQuerySplitStreams
PodsAPI QOSReserved ReduceDefaultCrashLoopBackOffDecay RuntimeClassInImageCriApi ShardedListAndWatch
StorageCapacityScoring StorageVersionAPI TaintTolerationComparisonOperators TopologyAwareWorkloadScheduling
TopologyManagerPolicyAlphaOptions UserNamespacesHostNetworkSupport VolumeLimitScaling WindowsCPUAndMemoryAffinity
WorkloadAwarePreemption WorkloadWithJob
"""

_BETA_OFF: Final = """
AllBeta ClusterTrustBundle ClusterTrustBundleProjection ConcurrentWatchObjectDecode CoordinatedLeaderElection
DRADeviceTaintRules LocalStorageCapacityIsolationFSQuotaMonitoring MaxUnavailableStatefulSet PodCertificateRequest
SELinuxMount SchedulerAsyncAPICalls StorageVersionMigrator
"""

_BETA_ON: Final = """
APIResponseCompression APIServerIdentity AllowParsingUserUIDFromCertAuth AtomicFIFO
AuthorizePodWebsocketUpgradeCreatePermission CPUManagerPolicyBetaOptions CRDObservedGenerationTracking
ClearingNominatedNodeNameAfterBinding ClientsAllowCARotation ClientsAllowTLSCacheGC ComponentFlagz ComponentStatusz
ConstrainedImpersonation ContainerCheckpoint ContainerRestartRules ContextualLogging DRAConsumableCapacity
DRADeviceBindingConditions DRADeviceTaints DRAExtendedResource DRAPartitionableDevices DRAResourceClaimDeviceStatus
DRAResourceClaimGranularStatusAuthorization DRASchedulerFilterTimeout DeclarativeValidationBeta
DeploymentReplicaSetTerminatingReplicas DetectCacheInconsistency EnvFiles ExtendWebSocketsToKubelet
GracefulNodeShutdown GracefulNodeShutdownBasedOnPodPriority HPAConfigurableTolerance HostnameOverride
InOrderInformersBatchProcess InPlacePodLevelResourcesVerticalScaling InPlacePodVerticalScalingInitContainers
KubeletCrashLoopBackOffMax KubeletEnsureSecretPulledImages KubeletSeparateDiskGC
KubeletServiceAccountTokenForCredentialProviders ListFromCacheSnapshot LoggingBetaOptions
MatchLabelKeysInPodTopologySpread MatchLabelKeysInPodTopologySpreadSelectorMerge MutablePodResourcesForSuspendedJobs
MutableSchedulingDirectivesForSuspendedJobs NodeDeclaredFeatures NominatedNodeNameForExpectation OpenAPIEnums
OpportunisticBatching PLEGOnDemandRelist PodDeletionCost PodLevelResources PodReadyToStartContainersCondition
PodTopologyLabelsAdmission PortForwardWebsockets PreventStaticPodAPIReferences RelaxedServiceNameValidation
ReloadKubeletClientCAFile ReloadKubeletServerCertificateFile RemoteRequestHeaderUID ResourceHealthStatus
ResourceHealthStatusMessage RestartAllContainersOnContainerExits RotateKubeletServerCertificate
SchedulerAsyncPreemption SchedulerPopFromBackoffQ ServiceAccountNodeAudienceRestriction SizeBasedListCostEstimate
StaleControllerConsistencyDaemonSet StaleControllerConsistencyJob StaleControllerConsistencyReplicaSet
StaleControllerConsistencyStatefulSet StatefulSetSemanticRevisionComparison StorageVersionHash StrictIPCIDRValidation
StructuredAuthenticationConfigurationEgressSelector StructuredAuthenticationConfigurationJWKSMetrics
TokenRequestServiceAccountUIDValidation TopologyManagerPolicyBetaOptions TranslateStreamCloseWebsocketRequests
UnauthenticatedHTTP2DOSMitigation UnknownVersionInteroperabilityProxy UnlockWhileProcessingFIFO
WatchCacheInitializationPostStartHook WatchList WatchListClient WindowsGracefulNodeShutdown
"""

_DEPRECATED_OFF: Final = """
AllowDNSOnlyNodeCSR AllowInsecureKubeletCertificateSigningRequests ChangeContainerStatusOnKubeletRestart
DeclarativeValidationTakeover KMSv1 KubeletRegistrationGetOnExistsOnly WindowsHostNetwork
"""

_DEPRECATED_OFF_LOCKED: Final = """
AllowOverwriteTerminationGracePeriodSeconds GitRepoVolumeDriver SeparateCacheWatchRPC
"""

_DEPRECATED_ON: Final = """
DisableCPUQuotaWithExclusiveCPUs KubeletPodResourcesListUseActivePods ServiceCIDRStatusFieldWiping
StorageNamespaceIndex
"""

_DEPRECATED_ON_LOCKED: Final = """
AggregatedDiscoveryRemoveBetaType DisableNodeKubeProxyVersion
"""

_GA_ON: Final = """
AllowServiceExternalIPs CustomCPUCFSQuotaPeriod DRAPrioritizedList InformerResourceVersion MutatingAdmissionPolicy
"""

_GA_ON_LOCKED: Final = """
APIServerTracing AnonymousAuthConfigurableEndpoints AnyVolumeDataSource AuthorizeNodeWithSelectors
AuthorizeWithSelectors BtreeWatchCache CPUManagerPolicyOptions CRDValidationRatcheting CSIServiceAccountTokenSecrets
ConsistentListFromCache CustomResourceFieldSelectors DRAAdminAccess DeclarativeValidation DisableAllocatorDualWrite
DynamicResourceAllocation ExecProbeTimeout ExternalServiceAccountTokenSigner ImageMaximumGCAge ImageVolume
InOrderInformers InPlacePodVerticalScaling JobBackoffLimitPerIndex JobManagedBy JobPodReplacementPolicy
JobSuccessPolicy KubeletCgroupDriverFromCRI KubeletFineGrainedAuthz KubeletPSI KubeletPodResourcesDynamicResources
KubeletPodResourcesGet KubeletTracing LogarithmicScaleDown MatchLabelKeysInPodAffinity MultiCIDRServiceAllocator
MutableCSINodeAllocatableCount NFTablesProxyMode NodeInclusionPolicyInPodTopologySpread NodeLogQuery NodeSwap
OrderedNamespaceDeletion PodLifecycleSleepAction PodLifecycleSleepActionAllowZero PodObservedGenerationTracking
PodSchedulingReadiness PreferSameTrafficDistribution ProcMountType RecoverVolumeExpansionFailure
RecursiveReadOnlyMounts RelaxedDNSSearchValidation RelaxedEnvironmentVariableValidation
ResilientWatchCacheInitialization RetryGenerateName SELinuxChangePolicy SELinuxMountReadWriteOncePod
SchedulerQueueingHints SeparateTaintEvictionController ServiceAccountTokenJTI ServiceAccountTokenNodeBinding
ServiceAccountTokenNodeBindingValidation ServiceAccountTokenPodNodeInfo SidecarContainers
StreamingCollectionEncodingToJSON StreamingCollectionEncodingToProtobuf StructuredAuthenticationConfiguration
SupplementalGroupsPolicy SystemdWatchdog TopologyManagerPolicyOptions UserNamespacesSupport VolumeAttributesClass
WinDSR WinOverlay
"""


KNOWN_GATES: Final[Mapping[str, KnownGate]] = {
    name: KnownGate(stage, default, locked)
    for names, stage, default, locked in (
        (_ALPHA_OFF, "ALPHA", False, False),
        (_BETA_OFF, "BETA", False, False),
        (_BETA_ON, "BETA", True, False),
        (_DEPRECATED_OFF, "DEPRECATED", False, False),
        (_DEPRECATED_OFF_LOCKED, "DEPRECATED", False, True),
        (_DEPRECATED_ON, "DEPRECATED", True, False),
        (_DEPRECATED_ON_LOCKED, "DEPRECATED", True, True),
        (_GA_ON, "", True, False),
        (_GA_ON_LOCKED, "", True, True),
    )
    for name in names.split()
}
"""By name; `AllAlpha` and `AllBeta` stand for all of their stage."""
