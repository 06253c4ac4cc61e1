// The words of templates' parameters in Chinese, by those of the catalogue.
import {translated} from '../../lib/i18n';

/** parameter is a title of a template's params_schema as people read it. */
export const parameter = translated({
  'Alibaba Cloud account': '阿里云账号',
  'RAM role': 'RAM 角色',
  'SAML provider in RAM': 'RAM 中的 SAML 提供方',
  'Address of the installation, without a slash at its end': '安装地址，末尾不带斜杠',
  'Service provider assertion consumer service URL, shown by admin.atlassian.com':
    '服务提供方断言使用者服务 URL，见 admin.atlassian.com',
  'Service provider entity URL, shown by admin.atlassian.com': '服务提供方实体 URL，见 admin.atlassian.com',
  'AWS account': 'AWS 账户',
  'IAM role': 'IAM 角色',
  'SAML provider in IAM': 'IAM 中的 SAML 提供方',
  'Assertion consumer service (ACS) URL, shown by the console': '断言使用者服务（ACS）URL，见其控制台',
  'Issuer URL, shown by the console': '颁发者 URL，见其控制台',
  'Name or id of the access portal': '访问门户的名称或 ID',
  'ACS URL, shown by the admin console under SSO': 'ACS URL，见管理后台的 SSO 页',
  'SP entity ID, shown by the admin console': 'SP 实体 ID，见管理后台',
  'Name of the authentication source': '认证源名称',
  Organization: '组织',
  'Primary domain': '主域名',
  'Custom provider': '自定义提供方',
  'My Domain name': '“我的域”名称',
  Workspace: '工作区',
  'Account id (UIN)': '账号 ID（UIN）',
  'CAM role': 'CAM 角色',
  'Identity provider in CAM': 'CAM 中的身份提供方',
  "Vanity URL's name": '个性化 URL 名称',
});
